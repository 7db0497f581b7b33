-- Count what runners without a counted quota run: they are new, or the queue had no limit.
INSERT INTO windlass.quotas AS quota (queue, runner, slots)
SELECT :queue::text, lease.runner, (
    SELECT count(*) FROM windlass.jobs
    WHERE worker = lease.runner AND status = 'running' AND queue || '' = :queue::text
)
FROM windlass.leases AS lease
WHERE lease.expires_at > :now AND NOT EXISTS (
    SELECT 1 FROM windlass.quotas AS counted
    WHERE counted.queue = :queue::text AND counted.runner = lease.runner AND counted.slots IS NOT NULL
)
ORDER BY lease.runner
ON CONFLICT (queue, runner) DO UPDATE SET slots = coalesce(quota.slots, excluded.slots)
