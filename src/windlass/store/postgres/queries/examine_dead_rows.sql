-- Live and dead rows of the hot tables, as the statistics know them, and how long ago they were cleaned.
SELECT relname::text, n_live_tup, n_dead_tup,
    (extract(epoch FROM clock_timestamp() - greatest(last_autovacuum, last_vacuum)) * 1000000)::bigint
FROM pg_stat_user_tables
WHERE schemaname = :schema AND relname IN ('jobs', 'keys', 'floors', 'tallies', 'leases', 'workers', 'notes', 'due_floor', 'schedules')
ORDER BY n_dead_tup DESC
