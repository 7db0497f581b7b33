-- name: examine_overdue
-- Finished jobs whose retention ended long ago, by history_counts and the indexes on drop_at: how many, if known, and for
-- how long the oldest is overdue.
SELECT sum(jobs)::bigint, max(:now - until) FROM (
    SELECT sum(jobs) AS jobs, (day + 1) * :day::bigint AS until FROM windlass.history_counts WHERE day >= 0
    GROUP BY day HAVING sum(jobs) > 0
    UNION ALL
    (SELECT NULL, drop_at FROM windlass.history_dead ORDER BY drop_at LIMIT 1)
    UNION ALL
    (SELECT NULL, drop_at FROM windlass.history_default ORDER BY drop_at LIMIT 1)
) AS partition WHERE until < :now - :late::bigint

-- name: examine_history_counts
-- Queues and statuses for which history_counts and a recount of history differ.
SELECT queue, status, sum(stored)::bigint, sum(counted)::bigint FROM (
    SELECT queue, status, jobs AS stored, 0 AS counted FROM windlass.history_counts
    UNION ALL
    SELECT queue, status, 0, count(*) FROM windlass.history GROUP BY queue, status
) AS both_ways
GROUP BY queue, status HAVING sum(stored) <> sum(counted) ORDER BY queue, status

-- name: examine_hidden
-- Pending jobs that no claim would find: below their watermark, or without one.
SELECT count(*) FROM windlass.jobs AS job WHERE stage = 'pending' AND status = 'pending' AND NOT EXISTS (
    SELECT FROM windlass.watermarks AS watermark
    WHERE watermark.queue = job.queue AND watermark.sort_priority = job.sort_priority
    /*yugabyte AND watermark.bucket = job.bucket */ AND watermark.rank <= job.rank
)

-- name: examine_keys
-- The next keys: how many, the last of them, and the orphaned ones, kept by no live job and no window. A key and its job
-- are committed together.
WITH portion AS MATERIALIZED (
    SELECT queue, hash, job, until FROM windlass.idempotency_keys
    WHERE (queue, hash) > (:queue::text, :hash::text) ORDER BY queue, hash LIMIT :limit::integer
)
SELECT (SELECT count(*) FROM portion), last.queue, last.hash, ARRAY(
    SELECT ARRAY[queue, hash, job::text] FROM portion
    WHERE until IS NULL AND NOT EXISTS (SELECT FROM windlass.jobs WHERE jobs.id = portion.job)
)
FROM (VALUES (1)) AS always LEFT JOIN (SELECT * FROM portion ORDER BY queue DESC, hash DESC LIMIT 1) AS last ON true

-- name: examine_schema
-- Whether the tables exist, and whether this user may read them.
SELECT current_user::text, coalesce(
    has_schema_privilege(space.oid, 'USAGE') AND has_any_column_privilege(steps.oid, 'SELECT'), false
)
FROM pg_namespace AS space JOIN pg_class AS steps ON steps.relnamespace = space.oid AND steps.relname = 'schema'
WHERE space.nspname = :schema

-- name: examine_steps
SELECT number, name, breaking FROM windlass.schema ORDER BY number

-- name: examine_may_create
SELECT current_database()::text, current_user::text, has_database_privilege(current_database(), 'CREATE')

-- name: examine_rights
-- Tables and views on which this user lacks privileges. Views are only read. Partitions of days are also truncated; they
-- are reported as one.
SELECT DISTINCT current_user::text, regexp_replace(relname::text, '_day_..$', '_day_*') AS name FROM pg_class
WHERE relnamespace = to_regnamespace(:schema::text) AND relkind IN ('r', 'p', 'v') AND relname <> 'schema' AND NOT (
        has_any_column_privilege(oid, 'SELECT') AND (relkind = 'v' OR has_any_column_privilege(oid, 'INSERT')
            AND has_any_column_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
        AND (relname !~ '_day_..$' OR has_table_privilege(oid, 'TRUNCATE'))
    )
ORDER BY name
