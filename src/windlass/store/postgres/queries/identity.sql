-- Which database this is: one that was restored from another's dump has its mark, but not its name or number.
SELECT base.datname::text, base.oid::bigint, mark.id::text
FROM pg_catalog.pg_database AS base LEFT JOIN windlass.identity AS mark ON true
WHERE base.datname = pg_catalog.current_database()
