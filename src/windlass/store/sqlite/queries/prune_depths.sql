-- Numbers of jobs that are kept no longer: one range of the primary key.
DELETE FROM windlass_depths WHERE step = :step AND slot >= :since AND slot < :until
