-- Every floor; the lowest number of a transaction that is still under way; and how much was ever written, by which one
-- sees, a little late, whether anybody has done anything.
SELECT queue, urgency, rank, returns, pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS behind,
    pg_stat_get_tuples_inserted('windlass.jobs'::regclass) + pg_stat_get_tuples_updated('windlass.jobs'::regclass)
FROM windlass.floors
