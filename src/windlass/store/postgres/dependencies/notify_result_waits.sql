-- Notify the clients that wait for these jobs, which end with this transaction.
WITH told AS (
    DELETE FROM windlass.result_waits WHERE job = ANY(:ids::uuid[]) RETURNING channel, job
)
SELECT pg_notify(channel, job::text)::text FROM told
