"""Jobs in a PostgreSQL database: many machines, one schema of tables."""
