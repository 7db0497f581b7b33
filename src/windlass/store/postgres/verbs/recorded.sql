-- The recorded attempts of jobs, live or finished.
SELECT id::text, attempt, status, attempts FROM windlass.jobs WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text, attempt, status, attempts FROM windlass.history WHERE id = ANY(:ids::uuid[])
