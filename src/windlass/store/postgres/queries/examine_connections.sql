-- Connections of clients, those of Windlass among them, and how many there may be for ordinary users.
SELECT count(*), count(*) FILTER (WHERE application_name = 'windlass'),
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
FROM pg_stat_activity WHERE backend_type = 'client backend'
