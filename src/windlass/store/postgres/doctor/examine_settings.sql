-- Version, durability settings and role of the server.
SELECT current_setting('server_version_num') AS server_version_num,
    current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('synchronous_standby_names') <> '' AS standbys,
    current_setting('default_transaction_read_only') AS read_only,
    pg_is_in_recovery() AS standby
