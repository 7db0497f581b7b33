-- name: identity
-- The identity of this database. A database that was restored from a dump has the same store id, but another name or oid.
SELECT database.datname::text, database.oid::bigint, store.id::text
FROM pg_catalog.pg_database AS database LEFT JOIN windlass.identity AS store ON true
WHERE database.datname = pg_catalog.current_database()
