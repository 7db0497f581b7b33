-- Samples that are kept no longer: one range of the primary key.
DELETE FROM windlass.samples WHERE step = :step::bigint AND slot >= :since::bigint AND slot < :until::bigint
