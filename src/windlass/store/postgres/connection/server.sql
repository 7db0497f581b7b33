-- name: identity
-- The identity of this database: one restored from a dump has the same store id, but another name or oid.
SELECT base.datname::text, base.oid::bigint, store.id::text
FROM pg_catalog.pg_database AS base LEFT JOIN windlass.identity AS store ON true
WHERE base.datname = pg_catalog.current_database()
