-- name: lease
SELECT runner, worker, boot, expires_at FROM windlass_leases WHERE runner = :runner

-- name: leases
SELECT runner, worker, boot, expires_at FROM windlass_leases ORDER BY runner

-- name: open_lease
INSERT INTO windlass_leases (runner, worker, boot, expires_at, length)
VALUES (:runner, :worker, :boot, :expires_at, :length)
ON CONFLICT (runner) DO NOTHING

-- name: renew
UPDATE windlass_leases SET expires_at = :expires_at, length = :length, graces = 0
WHERE runner IN (SELECT value FROM json_each(:runners))

-- name: cancels
SELECT job.id, job.attempt, job.worker
FROM windlass_jobs AS job INDEXED BY windlass_jobs_cancelling
JOIN windlass_leases AS lease ON lease.runner = job.worker
WHERE job.cancel_requested = 1 AND job.status = 'running' AND lease.worker = :worker

-- name: lease_activity
SELECT renewed_at, max(renewed_at, checked_at), graced_until FROM windlass_lease_activity

-- name: set_lease_activity
INSERT INTO windlass_lease_activity (one, boot, renewed_at, checked_at, graced_until) VALUES (1, :boot, :now, :now, :now)
ON CONFLICT (one) DO UPDATE SET boot = excluded.boot, renewed_at = excluded.renewed_at

-- name: shortest_lease
-- Including a lease that is about to be opened.
SELECT min(length) FROM (SELECT length FROM windlass_leases UNION ALL SELECT :length)

-- name: lease_lengths
SELECT runner, length, graces FROM windlass_leases

-- name: extend_leases
-- Extend leases by one length, from now.
UPDATE windlass_leases SET expires_at = max(expires_at, :now + length), graces = graces + 1
WHERE runner IN (SELECT value FROM json_each(:runners))

-- name: forgive_silence
INSERT INTO windlass_lease_activity (one, boot, renewed_at, checked_at, graced_until) VALUES (1, :boot, :now, :now, :graced_until)
ON CONFLICT (one) DO UPDATE SET
    boot = excluded.boot, renewed_at = excluded.renewed_at, checked_at = excluded.checked_at, graced_until = excluded.graced_until

-- name: set_checked
UPDATE windlass_lease_activity SET checked_at = :now

-- name: drop_lease
-- Without its lease, the runner can claim nothing.
DELETE FROM windlass_leases WHERE runner = :runner

-- name: runners_without_lease
SELECT DISTINCT worker FROM windlass_jobs INDEXED BY windlass_jobs_held
WHERE status = 'running' AND worker NOT IN (SELECT runner FROM windlass_leases) LIMIT :limit

-- name: running_of
SELECT id, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at, concurrency_key, key_strict
FROM windlass_jobs INDEXED BY windlass_jobs_held WHERE worker = :runner AND status = 'running' ORDER BY id
