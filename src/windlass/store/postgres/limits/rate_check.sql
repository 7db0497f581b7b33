-- name: granted
-- Valid tokens of a queue that were granted to other runners.
SELECT coalesce(sum(tokens), 0)::bigint FROM windlass.quotas
WHERE queue = :queue::text AND runner <> :runner::text AND until >= :now

-- name: grant
-- Grant tokens to a runner. Its earlier grant, which is spent or was forgotten, is replaced.
INSERT INTO windlass.quotas (queue, runner, tokens, until)
VALUES (:queue::text, :runner::text, :tokens::integer, :until::bigint)
ON CONFLICT (queue, runner) DO UPDATE SET tokens = excluded.tokens, until = excluded.until

-- name: lock_token_buckets
-- Lock token buckets, in order; those that are missing, or that others have locked, are left out.
SELECT key, credit, period, at, :now FROM windlass.token_buckets
WHERE queue = :queue::text AND key = ANY(:keys::text[]) ORDER BY key COLLATE "C" FOR NO KEY UPDATE SKIP LOCKED

-- name: add_token_buckets
-- Add full token buckets where there are none.
INSERT INTO windlass.token_buckets (queue, key, credit, period, at, full_at)
SELECT :queue::text, new.key, new.credit, new.period, :now, :now
FROM unnest(:keys::text[], :credits::bigint[], :periods::bigint[]) WITH ORDINALITY AS new (key, credit, period, nth)
WHERE NOT EXISTS (SELECT 1 FROM windlass.token_buckets AS old WHERE old.queue = :queue::text AND old.key = new.key)
ORDER BY nth
ON CONFLICT (queue, key) DO NOTHING

-- name: throttled
-- Throttled jobs of these keys, which later jobs must not overtake. Each has a key slot.
SELECT concurrency_key, sort_priority, rank, id::text, run_at, coalesce(rate_cost, 1) FROM windlass.jobs
WHERE key_slot IS NOT NULL AND queue = :queue::text AND concurrency_key = ANY(:keys::text[])
AND status || '' = 'scheduled' AND reason = 'rate limit of its key'
