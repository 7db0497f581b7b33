-- name: prunable
SELECT id FROM windlass_history WHERE drop_at <= :now ORDER BY drop_at LIMIT :limit

-- name: droppable
SELECT id FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids)) AND drop_at <= :now

-- name: prune_tombstones
DELETE FROM windlass_tombstones
WHERE id IN (SELECT id FROM windlass_tombstones WHERE until <= :now ORDER BY until LIMIT :limit)

-- name: prune_idempotency_keys
DELETE FROM windlass_idempotency_keys WHERE (queue, hash) IN (
    SELECT queue, hash FROM windlass_idempotency_keys WHERE until IS NOT NULL AND until <= :now ORDER BY until LIMIT :limit
)

-- name: rewind_throttled
-- Make jobs due earlier that are throttled by a token bucket in the future, by as much as `rewind_token_buckets` moves it back.
UPDATE windlass_jobs SET run_at = run_at + :now - (
    SELECT token_bucket.at FROM windlass_token_buckets AS token_bucket
    WHERE token_bucket.queue = windlass_jobs.queue AND token_bucket.key = windlass_jobs.concurrency_key
)
WHERE id IN (
    SELECT job.id FROM windlass_token_buckets AS token_bucket CROSS JOIN windlass_jobs AS job INDEXED BY windlass_jobs_key_slot
    WHERE token_bucket.at > :now + :tolerance AND job.queue = token_bucket.queue
    AND job.concurrency_key = token_bucket.key AND job.key_slot IS NOT NULL
    AND job.status = 'scheduled' AND job.reason = 'rate limit of its key' AND job.run_at >= token_bucket.at
)

-- name: rewind_token_buckets
-- After the clock was set back by more than :tolerance, token buckets would not refill until it catches up: move them back to now,
-- with their tokens.
UPDATE windlass_token_buckets SET at = :now, full_at = :now + full_at - at WHERE at > :now + :tolerance

-- name: prune_token_buckets
-- Delete full token buckets: a missing one counts as full.
DELETE FROM windlass_token_buckets WHERE (queue, key) IN (
    SELECT queue, key FROM windlass_token_buckets WHERE full_at <= :now LIMIT :limit
)

-- name: add_tombstones
-- Tombstones for jobs that ended less than a day ago. The list of attempts does not contain plain completions.
INSERT INTO windlass_tombstones (id, attempt, outcome, until)
SELECT id, attempt, CASE status WHEN 'completed' THEN status ELSE attempts ->> '$[#-1].outcome' END,
    finished_at + :tombstone
FROM windlass_history
WHERE id IN (SELECT value FROM json_each(:ids)) AND finished_at + :tombstone > :now
ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt, outcome = excluded.outcome, until = excluded.until

-- name: count_dropped
SELECT queue, status, count(*), sum(pending_parents) FROM windlass_history
WHERE id IN (SELECT value FROM json_each(:ids)) GROUP BY queue, status

-- name: drop_own_dependencies
DELETE FROM windlass_dependencies WHERE (parent, child) IN (
    SELECT parent.value, dropped.id FROM windlass_history AS dropped, json_each(dropped.parents) AS parent
    WHERE dropped.id IN (SELECT value FROM json_each(:ids)) AND dropped.pending_parents > 0
)

-- name: drop_notes
DELETE FROM windlass_notes WHERE job IN (SELECT value FROM json_each(:ids))

-- name: drop_history
DELETE FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))
