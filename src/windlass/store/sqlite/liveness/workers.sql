-- name: beat
INSERT INTO windlass_workers (id, info, boot, beat, started_at, beat_at)
VALUES (:id, :info, :boot, :beat, :now, :now)
ON CONFLICT (id) DO UPDATE SET info = excluded.info, boot = excluded.boot, beat = excluded.beat, beat_at = excluded.beat_at

-- name: drop_worker
DELETE FROM windlass_workers WHERE id = :id

-- name: jobs_by_worker
-- Goes from the leases, which are few, to the jobs of each runner, by an index.
SELECT lease.worker, count(*)
FROM windlass_leases AS lease CROSS JOIN windlass_jobs AS job INDEXED BY windlass_jobs_held ON job.worker = lease.runner
WHERE job.status = 'running' GROUP BY lease.worker

-- name: workers
SELECT id, info, boot, beat, started_at, beat_at FROM windlass_workers ORDER BY started_at, id

-- name: leadership
SELECT holder, term, boot, expires_at FROM windlass_leadership

-- name: set_leader
INSERT INTO windlass_leadership (one, holder, term, boot, expires_at) VALUES (1, :holder, :term, :boot, :expires_at)
ON CONFLICT (one) DO UPDATE
SET holder = excluded.holder, term = excluded.term, boot = excluded.boot, expires_at = excluded.expires_at

-- name: resign
-- The term stays, so that the next one is larger.
UPDATE windlass_leadership SET holder = NULL WHERE holder = :holder
