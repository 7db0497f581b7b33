-- Runners whose leases lapsed or are missing, and how many jobs each holds.
SELECT late.runner, (SELECT count(*) FROM windlass.jobs WHERE worker = late.runner AND status = 'running') FROM (
    SELECT runner FROM windlass.leases WHERE expires_at <= :now
    UNION
    (SELECT DISTINCT worker FROM windlass.jobs AS job
     WHERE status = 'running' AND NOT EXISTS (SELECT FROM windlass.leases WHERE runner = job.worker) LIMIT :limit)
) AS late
