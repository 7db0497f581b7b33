-- What holds back vacuum, and for how long: open transactions of this database or of a standby's feedback, prepared
-- transactions, and replication slots, which have no clock.
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
