-- Whether this user could make a schema.
SELECT current_database()::text, current_user::text, has_database_privilege(current_database(), 'CREATE')
