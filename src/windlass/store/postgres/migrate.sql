-- name: schema_locks
-- Transactions that hold a lock on a table of this schema, or the advisory lock of a migration: the oldest first.
SELECT a.pid, a.application_name, a.xact_start AT TIME ZONE 'UTC', left(regexp_replace(a.query, '\s+', ' ', 'g'), 80)
FROM pg_stat_activity AS a
WHERE a.pid <> pg_backend_pid()
    AND a.xact_start IS NOT NULL
    AND a.pid IN (
        SELECT l.pid
        FROM pg_locks AS l
        LEFT JOIN pg_class AS c ON c.oid = l.relation
        WHERE l.granted
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND (
                c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = :schema)
                OR l.locktype = 'advisory' AND l.classid = 2003398244 -- 0x77696e64, see migrate.py
                    AND l.objid::bigint = hashtext(:schema)::bigint & 4294967295
            )
    )
ORDER BY a.xact_start
LIMIT :limit

-- name: newer_steps
SELECT name, breaking FROM windlass.schema WHERE number > :newest ORDER BY number
