-- name: add_meters
INSERT INTO windlass_meters (interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
SELECT value ->> 'interval_start', value ->> 'queue', value ->> 'type', 0, 0, 0, 0, 0, 0, '{}', '{}'
FROM json_each(:rows) WHERE true
ON CONFLICT (interval_start, queue, type) DO NOTHING

-- name: lock_meters
-- SQLite has one writer, so there is nothing to lock: read the meters, to add up their histograms in Python.
SELECT interval_start, queue, meter.type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM json_each(:rows) AS wanted CROSS JOIN windlass_meters AS meter
ON interval_start = wanted.value ->> 'interval_start' AND queue = wanted.value ->> 'queue'
AND meter.type = wanted.value ->> 'type'

-- name: set_meters
UPDATE windlass_meters AS meter SET
    completed = new.value ->> 'completed', failed = new.value ->> 'failed', dead = new.value ->> 'dead',
    cancelled = new.value ->> 'cancelled', snoozed = new.value ->> 'snoozed', crashed = new.value ->> 'crashed',
    wait = new.value ->> 'wait', run = new.value ->> 'run'
FROM json_each(:rows) AS new
WHERE interval_start = new.value ->> 'interval_start' AND queue = new.value ->> 'queue' AND meter.type = new.value ->> 'type'

-- name: set_samples
-- Write samples, unless the stored one has as many attempts: a sample made again from fewer meters is wrong.
INSERT INTO windlass_samples
    (step, interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
SELECT value ->> 'step', value ->> 'interval_start', value ->> 'queue', value ->> 'type', value ->> 'completed',
    value ->> 'failed', value ->> 'dead', value ->> 'cancelled', value ->> 'snoozed', value ->> 'crashed',
    value ->> 'wait', value ->> 'run'
FROM json_each(:rows) WHERE true
ON CONFLICT (step, interval_start, queue, type) DO UPDATE SET
    completed = excluded.completed, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
    snoozed = excluded.snoozed, crashed = excluded.crashed, wait = excluded.wait, run = excluded.run
WHERE excluded.completed + excluded.failed + excluded.dead + excluded.cancelled + excluded.snoozed + excluded.crashed
    > completed + failed + dead + cancelled + snoozed + crashed

-- name: set_queue_depths
-- Write queue depths, unless the stored row has as many observations.
INSERT INTO windlass_queue_depths (step, interval_start, queue, observations, jobs, max_jobs, oldest)
SELECT value ->> 'step', value ->> 'interval_start', value ->> 'queue', value ->> 'observations', value ->> 'jobs',
    value ->> 'max_jobs', value ->> 'oldest'
FROM json_each(:rows) WHERE true
ON CONFLICT (step, interval_start, queue) DO UPDATE SET
    observations = excluded.observations, jobs = excluded.jobs, max_jobs = excluded.max_jobs, oldest = excluded.oldest
WHERE excluded.observations > observations

-- name: summed_meters
-- The meters of each queue or type as two sums: of the intervals in the rate window, and of those before it. Histograms
-- are joined to a list, and added up in Python, which is faster.
SELECT min(interval_start), CASE :by WHEN 'queue' THEN queue ELSE '' END AS one_queue,
    CASE :by WHEN 'type' THEN type ELSE '' END AS one_type,
    sum(completed), sum(failed), sum(dead), sum(cancelled), sum(snoozed), sum(crashed),
    '[' || group_concat(wait) || ']', '[' || group_concat(run) || ']', count(*)
FROM windlass_meters
WHERE interval_start >= :since AND (:queue IS NULL OR queue = :queue) AND (:type IS NULL OR type = :type)
GROUP BY one_queue, one_type, interval_start >= :fresh

-- name: summed_samples
-- The samples of each step as one for each queue, for each type, or for all.
SELECT interval_start, CASE :by WHEN 'queue' THEN queue ELSE '' END AS one_queue,
    CASE :by WHEN 'type' THEN type ELSE '' END AS one_type,
    sum(completed), sum(failed), sum(dead), sum(cancelled), sum(snoozed), sum(crashed),
    '[' || coalesce(group_concat(wait) FILTER (WHERE :times IN ('both', 'wait')), '') || ']',
    '[' || coalesce(group_concat(run) FILTER (WHERE :times IN ('both', 'run')), '') || ']'
FROM windlass_samples
WHERE step = :step AND interval_start >= :since AND interval_start < :until
GROUP BY interval_start, one_queue, one_type
