-- What time it is, and the first transaction that has not begun yet.
SELECT :now, pg_snapshot_xmax(pg_current_snapshot())::text::bigint
