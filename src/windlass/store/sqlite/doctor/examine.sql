-- name: newest_timestamp
-- The newest moment in the store. Ids grow with time, so the last hundred rows of each table are enough.
SELECT max(moment) FROM (
    SELECT max(updated_at) AS moment FROM (SELECT updated_at FROM windlass_jobs ORDER BY id DESC LIMIT 100)
    UNION ALL
    SELECT max(finished_at) FROM (SELECT finished_at FROM windlass_history ORDER BY id DESC LIMIT 100)
    UNION ALL
    SELECT max(beat_at) FROM windlass_workers
)

-- name: paused_queues
SELECT name FROM windlass_queues WHERE paused = 1 AND (paused_until IS NULL OR paused_until > :now)

-- name: count_dead
SELECT coalesce(sum(jobs), 0) FROM windlass_history_counts WHERE status = 'dead'

-- name: count_pending
SELECT type, count(*) FROM (
    SELECT type FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' ORDER BY sort_priority, rank, id LIMIT :limit
) GROUP BY type

-- name: count_delayed
-- Among the first :limit by due time.
SELECT queue, type, run_at <= :now AS due, count(*) FROM (
    SELECT queue, type, run_at FROM windlass_jobs INDEXED BY windlass_jobs_due
    WHERE status IN ('scheduled', 'failed') ORDER BY run_at, id LIMIT :limit
) GROUP BY queue, type, due

-- name: count_parked
SELECT queue, count(*) FROM (
    SELECT queue FROM windlass_jobs INDEXED BY windlass_jobs_parked
    WHERE status = 'blocked' AND reason = 'no worker for type' AND type = :type LIMIT :limit
) GROUP BY queue

-- name: workers_of_other_boots
-- Workers with another boot id and a heartbeat since this machine started: on another machine, or in a container with its own id.
SELECT id, info, beat_at FROM windlass_workers WHERE boot <> :boot AND beat_at > :started ORDER BY beat_at DESC

-- name: scan_idempotency_keys
-- The next keys, and whether each is orphaned: kept by no live job and no window.
SELECT queue, hash, job, until IS NULL AND NOT EXISTS (SELECT 1 FROM windlass_jobs WHERE id = windlass_idempotency_keys.job)
FROM windlass_idempotency_keys WHERE (queue, hash) > (:queue, :hash) ORDER BY queue, hash LIMIT :limit
