-- Delete old queue depths: one range of the primary key.
DELETE FROM windlass.queue_depths WHERE step = :step::bigint AND interval_start >= :since::bigint AND interval_start < :until::bigint
