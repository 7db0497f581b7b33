-- name: examine_schema
-- Whether our tables exist, and whether this user may read them.
SELECT current_user::text, coalesce(
    has_schema_privilege(space.oid, 'USAGE') AND has_table_privilege(steps.oid, 'SELECT'), false
)
FROM pg_namespace AS space JOIN pg_class AS steps ON steps.relnamespace = space.oid AND steps.relname = 'schema'
WHERE space.nspname = :schema

-- name: examine_steps
SELECT number, name, breaking FROM windlass.schema ORDER BY number

-- name: examine_may_create
SELECT current_database()::text, current_user::text, has_database_privilege(current_database(), 'CREATE')

-- name: examine_rights
-- Tables that this user lacks privileges on. Partitions of days are truncated too: one name for all of them.
SELECT DISTINCT current_user::text, regexp_replace(relname::text, '_day_..$', '_day_*') AS name FROM pg_class
WHERE relnamespace = to_regnamespace(:schema::text) AND relkind IN ('r', 'p') AND relname <> 'schema' AND NOT (
        has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
        AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')
        AND (relname !~ '_day_..$' OR has_table_privilege(oid, 'TRUNCATE'))
    )
ORDER BY name
