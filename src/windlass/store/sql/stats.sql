-- name: recent_meters
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.meters
WHERE interval_start >= :since AND (:queue::text IS NULL OR queue = :queue::text) AND (:type::text IS NULL OR type = :type::text)
ORDER BY interval_start, queue COLLATE "C", type COLLATE "C"

-- name: meters_between
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.meters WHERE interval_start >= :since AND interval_start < :until
ORDER BY interval_start, queue COLLATE "C", type COLLATE "C"

-- name: samples
-- The samples of one queue, of one type, or of all; always with the rows of the name '', which show what was sampled.
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed,
    CASE WHEN :times::text IN ('both', 'wait') THEN wait ELSE '{}' END,
    CASE WHEN :times::text IN ('both', 'run') THEN run ELSE '{}' END
FROM windlass.samples
WHERE step = :step AND interval_start >= :since AND interval_start < :until
    AND (:queue::text IS NULL OR queue IN ('', :queue::text)) AND (:type::text IS NULL OR type IN ('', :type::text))
ORDER BY interval_start, queue COLLATE "C", type COLLATE "C"

-- name: queue_depths
SELECT interval_start, queue, observations, jobs, max_jobs, oldest
FROM windlass.queue_depths
WHERE step = :step AND interval_start >= :since AND interval_start < :until AND (:queue::text IS NULL OR queue IN ('', :queue::text))
ORDER BY interval_start, queue COLLATE "C"

-- name: last_sampled
SELECT max(interval_start) FROM windlass.samples WHERE step = :step::bigint AND interval_start <= :at_most::bigint

-- name: first_sampled
SELECT min(interval_start) FROM windlass.samples WHERE step = :step::bigint AND interval_start >= :at_least::bigint

-- name: has_depths
SELECT 1 FROM windlass.queue_depths WHERE step = :step::bigint AND interval_start = :interval_start::bigint AND queue = ''

-- name: prune_meters
DELETE FROM windlass.meters WHERE interval_start < :before::bigint

-- name: prune_samples
DELETE FROM windlass.samples WHERE step = :step::bigint AND interval_start >= :since::bigint AND interval_start < :until::bigint

-- name: prune_queue_depths
DELETE FROM windlass.queue_depths WHERE step = :step::bigint AND interval_start >= :since::bigint AND interval_start < :until::bigint
