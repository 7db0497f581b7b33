-- The lines that those who are due go to: they have a key and no slot.
SELECT DISTINCT queue, concurrency_key FROM (
    SELECT queue, concurrency_key, slot FROM windlass_jobs INDEXED BY windlass_jobs_due
    WHERE status IN ('scheduled', 'failed') AND run_at <= :now
    ORDER BY run_at, id LIMIT :limit
) WHERE concurrency_key IS NOT NULL AND slot IS NULL
