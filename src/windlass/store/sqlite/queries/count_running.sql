-- How many jobs of a queue run: within the index, which holds only what runs.
SELECT count(*) FROM windlass_jobs INDEXED BY windlass_jobs_held WHERE status = 'running' AND queue = :queue
