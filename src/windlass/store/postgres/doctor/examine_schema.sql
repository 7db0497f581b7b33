-- Whether our tables exist, and whether this user may read them.
SELECT current_user::text, coalesce(
    has_schema_privilege(space.oid, 'USAGE') AND has_table_privilege(steps.oid, 'SELECT'), false
)
FROM pg_namespace AS space JOIN pg_class AS steps ON steps.relnamespace = space.oid AND steps.relname = 'schema'
WHERE space.nspname = :schema
