-- Connections, those of Windlass as far as they are visible, and the maximum for ordinary users.
SELECT (SELECT sum(numbackends)::bigint FROM pg_stat_database),
    (SELECT count(*) FROM pg_stat_activity WHERE starts_with(application_name, 'windlass')),
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
