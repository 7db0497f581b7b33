-- Who of these keys waits for tokens: those who come next must not overtake them. Each holds a slot.
SELECT concurrency_key, urgency, rank, id, run_at, coalesce(rate_cost, 1) FROM windlass_jobs INDEXED BY windlass_jobs_slot
WHERE slot IS NOT NULL AND queue = :queue AND concurrency_key IN (SELECT value FROM json_each(:keys))
AND status = 'scheduled' AND reason = 'rate limit of its key'
