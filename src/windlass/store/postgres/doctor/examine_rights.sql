-- Tables that this user lacks privileges on. Partitions of days are truncated too: one name for all of them.
SELECT DISTINCT current_user::text, regexp_replace(relname::text, '_day_..$', '_day_*') AS name FROM pg_class
WHERE relnamespace = to_regnamespace(:schema::text) AND relkind IN ('r', 'p') AND relname <> 'schema' AND NOT (
        has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
        AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')
        AND (relname !~ '_day_..$' OR has_table_privilege(oid, 'TRUNCATE'))
    )
ORDER BY name
