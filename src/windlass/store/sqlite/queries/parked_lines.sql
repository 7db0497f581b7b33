-- The lines that parked jobs of these types go back to.
SELECT DISTINCT queue, concurrency_key FROM windlass_jobs INDEXED BY windlass_jobs_parked
WHERE status = 'blocked' AND reason = 'no worker for type' AND type IN (SELECT value FROM json_each(:types))
AND concurrency_key IS NOT NULL AND slot IS NULL
