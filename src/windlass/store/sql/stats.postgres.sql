-- name: add_meters
-- Add empty meters where there are none, in order, to avoid deadlocks.
INSERT INTO windlass.meters (interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM json_populate_recordset(NULL::windlass.meters, :rows::json)
ON CONFLICT (interval_start, queue, type) DO NOTHING

-- name: lock_meters
-- Lock meters, in order: the caller adds up histograms in Python.
SELECT meter.interval_start, meter.queue, meter.type, meter.completed, meter.failed, meter.dead, meter.cancelled, meter.snoozed,
    meter.crashed, meter.wait, meter.run
FROM json_populate_recordset(NULL::windlass.meters, :rows::json) AS wanted
JOIN windlass.meters AS meter USING (interval_start, queue, type)
ORDER BY meter.queue COLLATE "C", meter.type COLLATE "C" FOR UPDATE OF meter

-- name: set_meters
UPDATE windlass.meters AS meter SET
    completed = new.completed, failed = new.failed, dead = new.dead, cancelled = new.cancelled,
    snoozed = new.snoozed, crashed = new.crashed, wait = new.wait, run = new.run
FROM json_populate_recordset(NULL::windlass.meters, :rows::json) AS new
WHERE meter.interval_start = new.interval_start AND meter.queue = new.queue AND meter.type = new.type

-- name: set_samples
-- Write samples in order, unless the stored one has as many attempts: a sample made again from fewer meters is wrong.
INSERT INTO windlass.samples AS kept
    (step, interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
SELECT step, interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM json_populate_recordset(NULL::windlass.samples, :rows::json)
ON CONFLICT (step, interval_start, queue, type) DO UPDATE SET
    completed = excluded.completed, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
    snoozed = excluded.snoozed, crashed = excluded.crashed, wait = excluded.wait, run = excluded.run
WHERE excluded.completed + excluded.failed + excluded.dead + excluded.cancelled + excluded.snoozed + excluded.crashed
    > kept.completed + kept.failed + kept.dead + kept.cancelled + kept.snoozed + kept.crashed

-- name: set_queue_depths
-- Write queue depths in order, unless the stored row has as many observations.
INSERT INTO windlass.queue_depths AS kept (step, interval_start, queue, observations, jobs, max_jobs, oldest)
SELECT step, interval_start, queue, observations, jobs, max_jobs, oldest
FROM json_populate_recordset(NULL::windlass.queue_depths, :rows::json)
ON CONFLICT (step, interval_start, queue) DO UPDATE SET
    observations = excluded.observations, jobs = excluded.jobs, max_jobs = excluded.max_jobs, oldest = excluded.oldest
WHERE excluded.observations > kept.observations

-- name: summed_meters
-- The meters of each queue or type as two sums: of the intervals in the rate window, and of those before it. Histograms
-- are joined to a list, and added up in Python, which is faster.
SELECT min(interval_start), CASE :by::text WHEN 'queue' THEN queue ELSE '' END AS one_queue,
    CASE :by::text WHEN 'type' THEN type ELSE '' END AS one_type,
    sum(completed)::bigint, sum(failed)::bigint, sum(dead)::bigint, sum(cancelled)::bigint, sum(snoozed)::bigint,
    sum(crashed)::bigint,
    '[' || string_agg(wait, ',') || ']', '[' || string_agg(run, ',') || ']', count(*)
FROM windlass.meters
WHERE interval_start >= :since::bigint AND (:queue::text IS NULL OR queue = :queue::text)
AND (:type::text IS NULL OR type = :type::text)
GROUP BY one_queue, one_type, interval_start >= :fresh::bigint

-- name: summed_samples
-- The samples of each step as one for each queue, for each type, or for all.
SELECT interval_start, CASE :by::text WHEN 'queue' THEN queue ELSE '' END AS one_queue,
    CASE :by::text WHEN 'type' THEN type ELSE '' END AS one_type,
    sum(completed)::bigint, sum(failed)::bigint, sum(dead)::bigint, sum(cancelled)::bigint, sum(snoozed)::bigint,
    sum(crashed)::bigint,
    '[' || coalesce(string_agg(wait, ',') FILTER (WHERE :times::text IN ('both', 'wait')), '') || ']',
    '[' || coalesce(string_agg(run, ',') FILTER (WHERE :times::text IN ('both', 'run')), '') || ']'
FROM windlass.samples
WHERE step = :step::bigint AND interval_start >= :since::bigint AND interval_start < :until::bigint
GROUP BY interval_start, one_queue, one_type
