-- Connections, those of Windlass among them as far as this user sees them, and how many there may be for ordinary users.
SELECT (SELECT sum(numbackends)::bigint FROM pg_stat_database),
    (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'windlass'),
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
