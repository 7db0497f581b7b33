-- The next keys: how many, the last of them, and those without a live job and without a window. A key and its job are
-- committed together.
WITH portion AS MATERIALIZED (
    SELECT queue, hash, job, until FROM windlass.idempotency_keys
    WHERE (queue, hash) > (:queue::text, :hash::text) ORDER BY queue, hash LIMIT :limit::integer
)
SELECT (SELECT count(*) FROM portion), last.queue, last.hash, ARRAY(
    SELECT ARRAY[queue, hash, job::text] FROM portion
    WHERE until IS NULL AND NOT EXISTS (SELECT FROM windlass.jobs WHERE jobs.id = portion.job)
)
FROM (VALUES (1)) AS always LEFT JOIN (SELECT * FROM portion ORDER BY queue DESC, hash DESC LIMIT 1) AS last ON true
