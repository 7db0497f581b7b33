-- name: meters_between
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.meters WHERE interval_start >= :since AND interval_start < :until ORDER BY interval_start, queue COLLATE "C", type COLLATE "C"

-- name: last_sampled
SELECT max(interval_start) FROM windlass.samples WHERE step = :step::bigint AND interval_start <= :at_most::bigint

-- name: first_sampled
SELECT min(interval_start) FROM windlass.samples WHERE step = :step::bigint AND interval_start >= :at_least::bigint

-- name: has_depths
SELECT 1 FROM windlass.queue_depths WHERE step = :step::bigint AND interval_start = :slot::bigint AND queue = ''

-- name: set_samples
-- Write samples, unless there are some with as many attempts; in order.
INSERT INTO windlass.samples AS kept
    (step, interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
SELECT :step::bigint, new.interval_start, new.queue, new.type, new.completed, new.failed, new.dead, new.cancelled, new.snoozed,
    new.crashed, new.wait, new.run
FROM unnest(
    :slots::bigint[], :queues::text[], :types::text[], :completeds::bigint[], :faileds::bigint[], :deads::bigint[],
    :cancelleds::bigint[], :snoozeds::bigint[], :crasheds::bigint[], :waits::text[], :runs::text[]
) WITH ORDINALITY AS new (interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run, place)
ORDER BY new.place
ON CONFLICT (step, interval_start, queue, type) DO UPDATE SET
    completed = excluded.completed, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
    snoozed = excluded.snoozed, crashed = excluded.crashed, wait = excluded.wait, run = excluded.run
WHERE excluded.completed + excluded.failed + excluded.dead + excluded.cancelled + excluded.snoozed + excluded.crashed
    > kept.completed + kept.failed + kept.dead + kept.cancelled + kept.snoozed + kept.crashed

-- name: set_queue_depths
-- Write queue depths, unless there are some with as many observations; in order.
INSERT INTO windlass.queue_depths AS kept (step, interval_start, queue, observations, jobs, max_jobs, oldest)
SELECT :step::bigint, new.interval_start, new.queue, new.observations, new.jobs, new.max_jobs, new.oldest
FROM unnest(
    :slots::bigint[], :queues::text[], :looks::bigint[], :jobs::text[], :mosts::text[], :oldests::bigint[]
) WITH ORDINALITY AS new (interval_start, queue, observations, jobs, max_jobs, oldest, place)
ORDER BY new.place
ON CONFLICT (step, interval_start, queue) DO UPDATE SET
    observations = excluded.observations, jobs = excluded.jobs, max_jobs = excluded.max_jobs, oldest = excluded.oldest
WHERE excluded.observations > kept.observations

-- name: prune_samples
DELETE FROM windlass.samples WHERE step = :step::bigint AND interval_start >= :since::bigint AND interval_start < :until::bigint

-- name: prune_queue_depths
DELETE FROM windlass.queue_depths WHERE step = :step::bigint AND interval_start >= :since::bigint AND interval_start < :until::bigint

-- name: samples
-- Samples in a range of time: of one queue, one type or all; and those without a name, which show what was sampled.
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.samples
WHERE step = :step AND interval_start >= :since AND interval_start < :until
    AND (:queue::text IS NULL OR queue IN ('', :queue::text)) AND (:type::text IS NULL OR type IN ('', :type::text))
ORDER BY interval_start, queue COLLATE "C", type COLLATE "C"

-- name: queue_depths
-- Queue depths in a range of time: of one queue or each, and of all together.
SELECT interval_start, queue, observations, jobs, max_jobs, oldest
FROM windlass.queue_depths
WHERE step = :step AND interval_start >= :since AND interval_start < :until AND (:queue::text IS NULL OR queue IN ('', :queue::text))
ORDER BY interval_start, queue COLLATE "C"
