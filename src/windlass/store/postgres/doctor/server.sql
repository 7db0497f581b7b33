-- name: examine_settings
-- Version, durability settings and role of the server.
SELECT current_setting('server_version_num') AS server_version_num,
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('synchronous_standby_names') <> '' AS standbys,
    current_setting('default_transaction_read_only') AS read_only,
    pg_is_in_recovery() AS standby

-- name: examine_connections
-- Connections, those of Windlass as far as they are visible, and the maximum for ordinary users.
SELECT (SELECT sum(numbackends)::bigint FROM pg_stat_database),
    (SELECT count(*) FROM pg_stat_activity WHERE starts_with(application_name, 'windlass')),
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer

-- name: examine_snapshots
-- What holds vacuum back, and for how long: open transactions of this database or of a standby's feedback, prepared
-- transactions, and replication slots, whose age in seconds is unknown.
SELECT 'session', concat(pid, ' (', concat_ws(', ', usename, nullif(application_name, ''), client_addr::text, state), ')'),
    (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint,
    left(regexp_replace(query, '\s+', ' ', 'g'), 80)
FROM pg_stat_activity
WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND (datid IS NULL OR datname = current_database())
    AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'
    AND xact_start < clock_timestamp() - :limit::bigint * interval '1 microsecond'
UNION ALL
SELECT 'prepared', gid, (extract(epoch FROM clock_timestamp() - prepared) * 1000000)::bigint, NULL
FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < clock_timestamp() - :limit::bigint * interval '1 microsecond'
UNION ALL
SELECT 'slot', slot_name, NULL, age(xmin)::text
FROM pg_replication_slots WHERE xmin IS NOT NULL AND (NOT active OR age(xmin) > :old::integer)
ORDER BY 3 DESC NULLS LAST

-- name: examine_insight
-- Whether this user sees the activity of others.
SELECT current_user::text, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')

-- name: examine_autovacuum
SELECT current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean

-- name: examine_dead_rows
-- Live and dead rows of the tables that change with every job, by the statistics, and how long ago they were vacuumed.
SELECT relname::text, n_live_tup, n_dead_tup,
    (extract(epoch FROM clock_timestamp() - greatest(last_autovacuum, last_vacuum)) * 1000000)::bigint
FROM pg_stat_user_tables
WHERE schemaname = :schema AND relname IN (
    'jobs', 'claims', 'idempotency_keys', 'watermarks', 'history_counts', 'leases', 'workers', 'notes',
    'due_watermark', 'schedules'
)
ORDER BY n_dead_tup DESC
