-- The next priority at which jobs of tenants wait in a fair queue.
SELECT urgency FROM windlass_jobs INDEXED BY windlass_jobs_lane
WHERE queue = :queue AND status = 'pending' AND lane IS NOT NULL AND urgency > :after ORDER BY urgency LIMIT 1
