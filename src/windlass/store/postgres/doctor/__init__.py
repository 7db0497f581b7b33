"""Read-only checks of a PostgreSQL server and our schema."""
