-- name: head_types
-- The types among the next jobs of a queue.
SELECT DISTINCT type FROM (
    SELECT type FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' ORDER BY sort_priority, rank, id LIMIT :limit
)

-- name: next_queue
-- The next queue with pending jobs: one seek, however many jobs there are.
SELECT queue FROM windlass_jobs INDEXED BY windlass_jobs_pending
WHERE status = 'pending' AND queue > :after ORDER BY queue LIMIT 1

-- name: park
-- Parked jobs give up their key slots, unless their key is strict.
UPDATE windlass_jobs SET status = 'blocked', reason = 'no worker for type', updated_at = :now,
    key_slot = CASE WHEN key_strict THEN key_slot END
WHERE id IN (
    SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type = :type
    ORDER BY sort_priority, rank, id LIMIT :limit
)

-- name: parked
-- Parked jobs of these types, and the key for which each will wait again.
SELECT id, queue, CASE WHEN key_slot IS NULL THEN concurrency_key END FROM windlass_jobs INDEXED BY windlass_jobs_parked
WHERE status = 'blocked' AND reason = 'no worker for type' AND type IN (SELECT value FROM json_each(:types))
LIMIT :limit

-- name: unpark
-- Parked jobs become pending at their old rank; with a key but no key slot, they wait for the key.
UPDATE windlass_jobs
SET status = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'blocked' ELSE 'pending' END,
    reason = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'waits for its concurrency key' END,
    updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))

-- name: parked_keys
-- The keys of the jobs that `park` is about to park.
SELECT DISTINCT concurrency_key FROM (
    SELECT concurrency_key FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type = :type
    ORDER BY sort_priority, rank, id LIMIT :limit
) WHERE concurrency_key IS NOT NULL

-- name: next_parked
-- The next type with parked jobs: one seek.
SELECT type FROM windlass_jobs INDEXED BY windlass_jobs_parked
WHERE status = 'blocked' AND reason = 'no worker for type' AND type > :after ORDER BY type LIMIT 1
