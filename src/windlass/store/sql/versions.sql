-- name: job_versions
-- What the version of a job is made of.
SELECT id::text, status, attempt, updated_at, payload FROM windlass.jobs WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text, status, attempt, updated_at, payload FROM windlass.history WHERE id = ANY(:ids::uuid[])
