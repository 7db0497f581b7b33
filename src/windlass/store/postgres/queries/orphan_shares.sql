-- Runners that have shares and no lease.
SELECT DISTINCT share.runner FROM windlass.shares AS share
WHERE NOT EXISTS (SELECT 1 FROM windlass.leases AS lease WHERE lease.runner = share.runner)
