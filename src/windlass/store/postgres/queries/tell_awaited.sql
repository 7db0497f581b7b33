-- These jobs have ended, or will have with this transaction: whoever waits for one of them is told.
WITH told AS (
    DELETE FROM windlass.awaited WHERE job = ANY(:ids::uuid[]) RETURNING channel, job
)
SELECT pg_notify(channel, job::text)::text FROM told
