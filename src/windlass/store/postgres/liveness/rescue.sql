-- name: lapsed
-- Whether a lease has lapsed, whether leases may be in their grace, for how long no process has reached the store, and
-- the time. Takes no lock.
SELECT EXISTS (SELECT FROM windlass.leases WHERE expires_at <= clock.now /*yugabyte - :skew */),
    coalesce(clock.now <= activity.graced_until, false),
    coalesce(clock.now - greatest(activity.at, activity.seen_at), 0), clock.now
FROM (SELECT :now AS now) AS clock LEFT JOIN windlass.lease_activity AS activity ON activity.one = 1

-- name: note_lease_check
-- Record a search for lapsed leases, unless the row is locked.
UPDATE windlass.lease_activity SET seen_at = :now
WHERE one = (SELECT one FROM windlass.lease_activity WHERE one = 1 FOR UPDATE SKIP LOCKED)

-- name: drop_lapsed
-- Delete lapsed leases: without them, their runners can claim nothing. Locked leases are skipped: they are being renewed
-- or deleted.
WITH lapsed AS MATERIALIZED (
    SELECT runner FROM windlass.leases WHERE expires_at <= :moment::bigint /*yugabyte - :skew */
    ORDER BY runner LIMIT :limit::integer FOR UPDATE SKIP LOCKED
)
DELETE FROM windlass.leases WHERE runner = ANY (ARRAY(SELECT runner FROM lapsed))
RETURNING runner

-- name: lock_held
-- Lock all jobs that a runner runs, in order, after any settlement of its own that is in flight. By ids, so that the
-- order does not make the planner scan the table. With a lock_timeout, because a caller's transaction may lock a job.
SELECT id::text, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs AS job
WHERE job.id = ANY (ARRAY(SELECT held.id FROM windlass.held_jobs AS held WHERE held.runner = :runner))
    AND job.status = 'running' AND job.worker = :runner
    /*plain*/AND (SELECT set_config('lock_timeout', '1s', true)) IS NOT NULL/*end*/
ORDER BY job.id FOR UPDATE

-- name: lock_orphaned
-- Lock a portion of the jobs of runners without a lease; jobs that are being settled are skipped. Unordered, because an
-- order would make the planner scan the table.
SELECT id::text, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs AS job
WHERE job.id = ANY (ARRAY(
        SELECT held.id FROM windlass.held_jobs AS held
        WHERE held.runner = ANY (:runners::text[]) AND held.claimed_at <= :before::bigint
    ))
    AND job.status || '' = 'running' AND job.worker = ANY (:runners::text[]) AND job.claimed_at <= :before::bigint
LIMIT :limit::integer FOR UPDATE SKIP LOCKED

-- name: drop_lease
-- Delete a runner's lease: without it, the runner can claim nothing.
DELETE FROM windlass.leases WHERE runner = :runner

-- name: orphans
-- Runners without a lease that hold jobs claimed before :before: one seek for each runner.
WITH RECURSIVE holders AS (
    (SELECT runner FROM windlass.claims ORDER BY runner LIMIT 1)
    UNION ALL
    SELECT (
        SELECT next.runner FROM windlass.claims AS next WHERE next.runner > holders.runner ORDER BY next.runner LIMIT 1
    )
    FROM holders WHERE holders.runner IS NOT NULL
)
SELECT runner FROM holders
WHERE runner IS NOT NULL
    AND NOT EXISTS (SELECT FROM windlass.leases AS lease WHERE lease.runner = holders.runner)
    AND EXISTS (
        SELECT FROM windlass.held_jobs AS job WHERE job.runner = holders.runner AND job.claimed_at <= :before::bigint OFFSET 0
    )
LIMIT :limit::integer

-- name: drop_claims
-- Delete claims without running jobs. Runners delete most of theirs, but not those whose replies were lost. A job that is
-- claimed again is in another row.
DELETE FROM windlass.claims WHERE /*plain*/ctid/*end*//*yugabyte part*/ = ANY (ARRAY(
    SELECT over./*plain*/ctid/*end*//*yugabyte part*/ FROM windlass.claims AS over WHERE over.runner > '' AND NOT EXISTS (
        SELECT FROM windlass.jobs AS job
        WHERE job.id = ANY (over.jobs) AND job.claim = over.claim AND job.worker = over.runner
        AND job.status || '' = 'running' OFFSET 0
    )
    FOR UPDATE SKIP LOCKED
))
