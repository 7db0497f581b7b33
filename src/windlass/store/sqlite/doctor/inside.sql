-- name: workers_of_other_boots
-- Workers that beat after this machine started, under another boot id: on another machine, or in a container with its own id.
SELECT id, info, beat_at FROM windlass_workers WHERE boot <> :boot AND beat_at > :started ORDER BY beat_at DESC

-- name: scan_idempotency_keys
-- The next keys, each with whether no live job and no window keeps it.
SELECT queue, hash, job, until IS NULL AND NOT EXISTS (SELECT 1 FROM windlass_jobs WHERE id = windlass_idempotency_keys.job)
FROM windlass_idempotency_keys WHERE (queue, hash) > (:queue, :hash) ORDER BY queue, hash LIMIT :limit
