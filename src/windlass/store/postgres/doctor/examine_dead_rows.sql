-- Live and dead rows of the hot tables, by the statistics, and how long ago they were vacuumed.
SELECT relname::text, n_live_tup, n_dead_tup,
    (extract(epoch FROM clock_timestamp() - greatest(last_autovacuum, last_vacuum)) * 1000000)::bigint
FROM pg_stat_user_tables
WHERE schemaname = :schema AND relname IN (
    'jobs', 'idempotency_keys', 'watermarks', 'history_counts', 'leases', 'workers', 'notes', 'due_watermark', 'schedules'
)
ORDER BY n_dead_tup DESC
