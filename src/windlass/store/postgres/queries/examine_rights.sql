-- Tables of ours that this user may not use in every way that we do.
SELECT current_user::text, relname::text FROM pg_class
WHERE relnamespace = to_regnamespace(:schema::text) AND relkind IN ('r', 'p') AND NOT relispartition
    AND relname <> 'schema' AND NOT (
        has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
        AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')
    )
ORDER BY relname
