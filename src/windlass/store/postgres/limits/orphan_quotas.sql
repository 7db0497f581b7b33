-- Runners with quotas and no lease.
SELECT DISTINCT quota.runner FROM windlass.quotas AS quota
WHERE NOT EXISTS (SELECT 1 FROM windlass.leases AS lease WHERE lease.runner = quota.runner)
