-- Delete old samples: one range of the primary key.
DELETE FROM windlass.samples WHERE step = :step::bigint AND interval_start >= :since::bigint AND interval_start < :until::bigint
