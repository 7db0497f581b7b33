-- Whether this user sees what others do.
SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
