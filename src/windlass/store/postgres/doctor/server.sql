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
    (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'windlass'),
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
