-- Run times of a type in a queue, by interval.
SELECT run FROM windlass.meters WHERE interval_start >= :since::bigint AND queue = :queue::text AND type = :type::text
