-- Shares of runners that are gone, after their jobs were put back. One that a late claim has in hand, or under which
-- jobs run still, or whose tokens are still good, stays until the next look for such shares.
DELETE FROM windlass.shares WHERE ctid = ANY(ARRAY(
    SELECT share.ctid FROM windlass.shares AS share
    WHERE share.runner = ANY(:runners::text[]) AND share.until < :now
    AND NOT EXISTS (SELECT 1 FROM windlass.leases AS lease WHERE lease.runner = share.runner)
    AND NOT EXISTS (SELECT 1 FROM windlass.jobs AS job WHERE job.worker = share.runner AND job.status = 'running' OFFSET 0)
    FOR UPDATE SKIP LOCKED
))
