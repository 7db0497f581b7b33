-- name: beat
INSERT INTO windlass.workers (id, info, started_at, beat_at)
SELECT worker.id, worker.info, :now, :now FROM unnest(:ids::text[], :infos::text[]) AS worker (id, info)
ON CONFLICT (id) DO UPDATE SET info = excluded.info, beat_at = excluded.beat_at

-- name: unregister_worker
DELETE FROM windlass.workers WHERE id = :id

-- name: workers
-- Live workers, with the number of jobs that their runners hold, counted lease by lease.
SELECT worker.info, worker.started_at, worker.beat_at, coalesce(busy.jobs, 0)::bigint
FROM windlass.workers AS worker
LEFT JOIN (
    SELECT lease.worker, sum(held.jobs) AS jobs
    FROM windlass.leases AS lease CROSS JOIN LATERAL (
        SELECT count(*) AS jobs FROM windlass.held_jobs AS job WHERE job.runner = lease.runner
    ) AS held
    GROUP BY lease.worker
) AS busy ON busy.worker = worker.id
WHERE worker.beat_at > :now - :silent::bigint
ORDER BY worker.started_at, worker.id

-- name: drop_silent_workers
DELETE FROM windlass.workers WHERE beat_at <= :now - :silent::bigint

-- name: acquire_leadership
-- Acquire leadership if it is free, or renew it. Of two concurrent candidates the second waits for the first, and fails.
-- The term grows whenever leadership was free, even if the same candidate acquires it.
INSERT INTO windlass.leadership AS leader (one, holder, term, expires_at) VALUES (1, :holder, 1, :now + :length::bigint)
ON CONFLICT (one) DO UPDATE SET
    holder = excluded.holder,
    term = leader.term + CASE WHEN leader.holder = excluded.holder AND leader.expires_at > :now THEN 0 ELSE 1 END,
    expires_at = excluded.expires_at
WHERE leader.holder IS NULL OR leader.holder = excluded.holder OR leader.expires_at <= :now
RETURNING term

-- name: leader
SELECT holder FROM windlass.leadership WHERE holder IS NOT NULL AND expires_at > :now

-- name: resign
-- Give up leadership; the term stays, so that the next one is larger.
UPDATE windlass.leadership SET holder = NULL WHERE holder = :holder
