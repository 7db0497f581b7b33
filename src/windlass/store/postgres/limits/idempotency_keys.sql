-- name: take_keys
-- Take the keys that are free, in order, to avoid deadlocks.
INSERT INTO windlass.idempotency_keys (queue, hash, job)
SELECT queue, hash, job FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS wanted (queue, hash, job)
ORDER BY queue, hash
ON CONFLICT (queue, hash) DO NOTHING
RETURNING queue, hash

-- name: take_over_keys
-- Take keys whose window is over or, for a retry, belongs to the job. Looks up the keys; `until + 0` keeps the planner from
-- scanning all windows.
UPDATE windlass.idempotency_keys AS held SET job = wanted.job, until = NULL
FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS wanted (queue, hash, job)
WHERE held.queue = wanted.queue AND held.hash = wanted.hash AND held.until + 0 IS NOT NULL
AND (held.until + 0 <= :now OR (:own::boolean AND held.job = wanted.job))
RETURNING held.queue, held.hash

-- name: lock_keys
-- Lock keys whose holders may have to be replaced, so that two replacements of one job are serialized.
SELECT held.queue, held.hash, held.job::text
FROM unnest(:queues::text[], :hashes::text[]) AS wanted (queue, hash)
JOIN windlass.idempotency_keys AS held ON held.queue = wanted.queue AND held.hash = wanted.hash
ORDER BY held.queue, held.hash FOR UPDATE OF held

-- name: key_holders
SELECT held.queue, held.hash, held.job::text
FROM unnest(:queues::text[], :hashes::text[]) AS wanted (queue, hash)
JOIN windlass.idempotency_keys AS held ON held.queue = wanted.queue AND held.hash = wanted.hash

-- name: lock_holders
-- Lock jobs that may have to be replaced; those that are being claimed or ended are skipped.
SELECT id::text, status FROM windlass.jobs WHERE id = ANY(:ids::uuid[]) FOR UPDATE SKIP LOCKED

-- name: reassign_keys
-- Give these keys to these jobs, whichever jobs had them.
UPDATE windlass.idempotency_keys AS held SET job = taken.job, until = NULL
FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS taken (queue, hash, job)
WHERE held.queue = taken.queue AND held.hash = taken.hash AND held.job <> taken.job

-- name: release_keys
-- Free the keys of ended jobs, unless another job has taken them since.
DELETE FROM windlass.idempotency_keys AS held
USING unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS freed (queue, hash, job)
WHERE held.queue = freed.queue AND held.hash = freed.hash AND held.job = freed.job

-- name: hold_keys_for_window
-- The keys of ended jobs stay taken for their windows.
UPDATE windlass.idempotency_keys AS held SET until = :now + kept.length
FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[], :lengths::bigint[]) AS kept (queue, hash, job, length)
WHERE held.queue = kept.queue AND held.hash = kept.hash AND held.job = kept.job
