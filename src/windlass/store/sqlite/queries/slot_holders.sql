-- Who has the slots of a key, the lowest slots first.
SELECT id, status, coalesce(claimed_at, updated_at), run_at, worker FROM windlass_jobs INDEXED BY windlass_jobs_slot
WHERE :in_line AND slot IS NOT NULL AND queue = :queue AND concurrency_key = :key ORDER BY slot LIMIT :most_named
