-- Throttled jobs of these keys, which must not be overtaken. Each holds a slot.
SELECT concurrency_key, sort_priority, rank, id::text, run_at, coalesce(rate_cost, 1) FROM windlass.jobs
WHERE slot IS NOT NULL AND queue = :queue::text AND concurrency_key = ANY(:keys::text[])
AND status || '' = 'scheduled' AND reason = 'rate limit of its key'
