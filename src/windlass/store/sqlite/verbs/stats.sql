-- name: meter
-- Histograms are added up in Python.
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass_meters WHERE interval_start = :slot AND queue = :queue AND type = :type

-- name: set_meter
INSERT OR REPLACE INTO windlass_meters
    (interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
VALUES (:slot, :queue, :type, :completed, :failed, :dead, :cancelled, :snoozed, :crashed, :wait, :run)

-- name: meters
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass_meters WHERE interval_start >= :since ORDER BY interval_start, queue, type

-- name: meters_between
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass_meters WHERE interval_start >= :since AND interval_start < :until ORDER BY interval_start, queue, type

-- name: samples
-- One queue and type, or all; and the rows without a name, which show what was made.
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass_samples
WHERE step = :step AND interval_start >= :since AND interval_start < :until
    AND (:queue IS NULL OR queue IN ('', :queue)) AND (:type IS NULL OR type IN ('', :type))
ORDER BY interval_start, queue, type

-- name: queue_depths
SELECT interval_start, queue, observations, jobs, max_jobs, oldest
FROM windlass_queue_depths
WHERE step = :step AND interval_start >= :since AND interval_start < :until AND (:queue IS NULL OR queue IN ('', :queue))
ORDER BY interval_start, queue

-- name: set_sample
-- Unless the stored sample counts as much: a sample made again from fewer parts is wrong.
INSERT INTO windlass_samples
    (step, interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
VALUES (:step, :slot, :queue, :type, :completed, :failed, :dead, :cancelled, :snoozed, :crashed, :wait, :run)
ON CONFLICT (step, interval_start, queue, type) DO UPDATE SET
    completed = excluded.completed, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
    snoozed = excluded.snoozed, crashed = excluded.crashed, wait = excluded.wait, run = excluded.run
WHERE excluded.completed + excluded.failed + excluded.dead + excluded.cancelled + excluded.snoozed + excluded.crashed
    > completed + failed + dead + cancelled + snoozed + crashed

-- name: set_queue_depth
-- Unless the stored row has as many observations.
INSERT INTO windlass_queue_depths (step, interval_start, queue, observations, jobs, max_jobs, oldest)
VALUES (:step, :slot, :queue, :looks, :jobs, :most, :oldest)
ON CONFLICT (step, interval_start, queue) DO UPDATE SET
    observations = excluded.observations, jobs = excluded.jobs, max_jobs = excluded.max_jobs, oldest = excluded.oldest
WHERE excluded.observations > observations

-- name: last_sampled
SELECT max(interval_start) FROM windlass_samples WHERE step = :step AND interval_start <= :at_most

-- name: first_sampled
SELECT min(interval_start) FROM windlass_samples WHERE step = :step AND interval_start >= :at_least

-- name: has_queue_depth
SELECT 1 FROM windlass_queue_depths WHERE step = :step AND interval_start = :slot AND queue = ''
