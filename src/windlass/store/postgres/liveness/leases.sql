-- name: open_lease
-- Open a lease for a new runner. An existing one, lapsed or not, is left unchanged.
INSERT INTO windlass.leases (runner, worker, expires_at, length)
VALUES (:runner, :worker, :now + :length::bigint, :length::bigint)
ON CONFLICT (runner) DO NOTHING

-- name: renew
-- Extend valid leases, and record the lease activity in the same statement, which uses no other table whose locks could
-- delay it. Leases are locked in order; deleted and lapsed ones are not renewed. Nothing is done if a silence must be
-- forgiven first, or the clock was set back, unless that was done at :moment. The activity is written last, and not
-- at all if it is locked. A lease is never shortened, because a concurrent transaction may have given it a grace.
WITH activity AS MATERIALIZED (
    SELECT clock.now, clock.now - activity.at AS silence
    FROM (SELECT :now AS now) AS clock LEFT JOIN windlass.lease_activity AS activity ON activity.one = 1
), due AS MATERIALIZED (
    SELECT :moment::bigint IS NULL AND (
        silence IS NULL OR silence <= -:set_back::bigint
        OR silence > :fresh::bigint AND EXISTS (SELECT FROM windlass.leases WHERE activity.silence > length / 2)
    ) AS due FROM activity
), kept AS MATERIALIZED (
    SELECT runner FROM windlass.leases
    WHERE runner = ANY (:runners::text[]) AND expires_at > coalesce(:moment::bigint, :now) /*yugabyte - :skew */
    AND NOT (SELECT due FROM due)
    ORDER BY runner FOR UPDATE
), renewed AS (
    UPDATE windlass.leases
    SET expires_at = greatest(expires_at, :now + :length::bigint), length = :length::bigint, graces = 0
    WHERE runner = ANY (ARRAY(SELECT runner FROM kept))
), beat AS (
    UPDATE windlass.lease_activity SET at = :now WHERE one = (
        SELECT one FROM windlass.lease_activity
        WHERE one = 1 AND (SELECT count(*) FROM kept) > 0 AND at < :now - :fresh::bigint FOR UPDATE SKIP LOCKED
    )
)
SELECT due, ARRAY(SELECT runner FROM kept) FROM due

-- name: cancels
-- Running jobs of a worker's runners that were asked to stop, by the partial index.
SELECT job.id, job.attempt, job.worker
FROM (
    SELECT id::text, attempt, worker FROM windlass.jobs WHERE cancel_requested AND status || '' = 'running' OFFSET 0
) AS job JOIN windlass.leases AS lease ON lease.runner = job.worker
WHERE lease.worker = :worker
ORDER BY job.id

-- name: lease_activity
-- The last renewal, the time, and the length of the shortest lease, including one about to be opened. Takes no lock.
SELECT (SELECT at FROM windlass.lease_activity WHERE one = 1), :now,
    least(:length::bigint, (SELECT min(length) FROM windlass.leases))

-- name: add_lease_activity
INSERT INTO windlass.lease_activity (one, at, seen_at, graced_until) VALUES (1, :now, :now, :now) ON CONFLICT (one) DO NOTHING

-- name: lock_lease_activity
-- Lock the lease activity; a transaction that waited for the lock sees what the previous holder wrote.
SELECT at, greatest(at, seen_at), graced_until, :now FROM windlass.lease_activity WHERE one = 1 FOR UPDATE

-- name: lock_leases
-- Lock all leases, in order, like renewals.
SELECT runner, length, graces FROM windlass.leases ORDER BY runner FOR UPDATE

-- name: grace
-- Extend leases, which the caller has locked, to one length from the moment.
UPDATE windlass.leases SET expires_at = greatest(expires_at, :moment::bigint + length), graces = graces + 1
WHERE runner = ANY (:runners::text[])

-- name: shorten
-- After the clock was set back: shorten leases, which the caller has locked, to one length from the moment.
UPDATE windlass.leases SET expires_at = :moment::bigint + length
WHERE runner = ANY (:runners::text[]) AND expires_at > :moment::bigint + length

-- name: expire_leadership
-- After the clock was set back, leadership would last too long: end it. The leader acquires it again.
UPDATE windlass.leadership SET expires_at = :moment::bigint WHERE expires_at > :moment::bigint

-- name: set_lease_activity
-- Record that silences up to this moment are forgiven. The caller has locked the row.
UPDATE windlass.lease_activity SET at = :moment::bigint, seen_at = :moment::bigint,
    graced_until = :graced_until::bigint WHERE one = 1
