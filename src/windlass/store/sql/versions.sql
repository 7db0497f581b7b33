-- name: job_versions
-- The columns that make up a job's version. The last change of a running job is computed as in read_jobs.py, because not every
-- store writes updated_at at a claim.
SELECT id::text, status, attempt,
    CASE WHEN status = 'running' AND claimed_at > updated_at THEN claimed_at ELSE updated_at END AS updated_at, payload
FROM windlass.jobs WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text, status, attempt, updated_at, payload FROM windlass.history WHERE id = ANY(:ids::uuid[])
