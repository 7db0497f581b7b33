-- Delete quotas of dead runners after their jobs were put back. A quota that a late claim has locked, under which
-- jobs run, or whose tokens are valid, stays for the next call.
DELETE FROM windlass.quotas WHERE ctid = ANY(ARRAY(
    SELECT quota.ctid FROM windlass.quotas AS quota
    WHERE quota.runner = ANY(:runners::text[]) AND quota.until < :now
    AND NOT EXISTS (SELECT 1 FROM windlass.leases AS lease WHERE lease.runner = quota.runner)
    AND NOT EXISTS (SELECT 1 FROM windlass.jobs AS job WHERE job.worker = quota.runner AND job.status = 'running' OFFSET 0)
    FOR UPDATE SKIP LOCKED
))
