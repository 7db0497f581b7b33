-- name: newest_timestamp
-- Ids grow with time: the last hundred of each table are enough.
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

-- name: next_parked
-- The next type with parked jobs: one seek.
SELECT type FROM windlass_jobs INDEXED BY windlass_jobs_parked
WHERE status = 'blocked' AND reason = 'no worker for type' AND type > :after ORDER BY type LIMIT 1

-- name: count_parked
SELECT queue, count(*) FROM (
    SELECT queue FROM windlass_jobs INDEXED BY windlass_jobs_parked
    WHERE status = 'blocked' AND reason = 'no worker for type' AND type = :type LIMIT :limit
) GROUP BY queue
