-- Whether this user sees the activity of others.
SELECT current_user::text, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
