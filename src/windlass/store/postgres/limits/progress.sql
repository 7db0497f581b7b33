-- The lowest id of a running transaction, and the number of rows ever written to jobs, by the statistics.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
    pg_stat_get_tuples_inserted('windlass.jobs'::regclass) + pg_stat_get_tuples_updated('windlass.jobs'::regclass)
