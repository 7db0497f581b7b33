-- Whether this user may create a schema.
SELECT current_database()::text, current_user::text, has_database_privilege(current_database(), 'CREATE')
