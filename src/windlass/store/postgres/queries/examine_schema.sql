-- Whether our tables are there, and whether this user may look at them. Asks nothing of a schema that is closed to us.
SELECT current_user::text, coalesce(
    has_schema_privilege(space.oid, 'USAGE') AND has_table_privilege(steps.oid, 'SELECT'), false
)
FROM pg_namespace AS space JOIN pg_class AS steps ON steps.relnamespace = space.oid AND steps.relname = 'schema'
WHERE space.nspname = :schema
