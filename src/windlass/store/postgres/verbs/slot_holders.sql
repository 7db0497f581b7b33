-- The holders of the slots of a key.
SELECT id::text, status, coalesce(claimed_at, updated_at), run_at, worker FROM windlass.jobs
WHERE :in_line::boolean AND slot IS NOT NULL AND queue = :queue::text AND concurrency_key = :key::text
ORDER BY slot LIMIT :most_named::bigint
