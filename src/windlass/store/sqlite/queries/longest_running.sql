-- What has run longest in a queue, among so many that run.
SELECT id, status, claimed_at, run_at, worker FROM (
    SELECT id, status, claimed_at, run_at, worker FROM windlass_jobs INDEXED BY windlass_jobs_held
    WHERE status = 'running' AND queue = :queue LIMIT :most_in_line
) ORDER BY claimed_at, id LIMIT :most_named
