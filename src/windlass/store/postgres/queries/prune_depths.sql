-- Numbers of jobs that are kept no longer: one range of the primary key.
DELETE FROM windlass.depths WHERE step = :step::bigint AND slot >= :since::bigint AND slot < :until::bigint
