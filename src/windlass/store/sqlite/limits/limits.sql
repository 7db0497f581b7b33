-- name: queue_limits
-- One row for each queue that is paused or limited; most stores have none.
SELECT name, paused AND (paused_until IS NULL OR paused_until > :now), max_concurrency, rate_limit, fair, rated,
    CASE WHEN fair THEN declared END, CASE WHEN fair THEN changed END
FROM windlass_queues WHERE limited OR rated OR paused

-- name: token_buckets
-- The token buckets of a queue (key '') and of its keys. A missing token bucket is full.
SELECT key, credit, period, at FROM windlass_token_buckets
WHERE queue = :queue AND key IN (SELECT value FROM json_each(:keys))

-- name: set_token_bucket
INSERT OR REPLACE INTO windlass_token_buckets (queue, key, credit, period, at, full_at) VALUES (?, ?, ?, ?, ?, ?)

-- name: throttled
-- Jobs that wait for tokens of these keys, which later jobs must not overtake. Each has a key slot.
SELECT concurrency_key, sort_priority, rank, id, run_at, coalesce(rate_cost, 1)
FROM windlass_jobs INDEXED BY windlass_jobs_key_slot
WHERE key_slot IS NOT NULL AND queue = :queue AND concurrency_key IN (SELECT value FROM json_each(:keys))
AND status = 'scheduled' AND reason = 'rate limit of its key'

-- name: throttle
-- Delay a job whose key has no tokens. The job keeps its key slot and rank, and no attempt is counted.
UPDATE windlass_jobs SET status = 'scheduled', reason = 'rate limit of its key', run_at = :until, updated_at = :now
WHERE id = :id
