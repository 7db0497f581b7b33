"""Read-only checks of a PostgreSQL server and the schema of Windlass."""
