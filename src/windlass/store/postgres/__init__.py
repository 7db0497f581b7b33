"""The PostgreSQL store: one schema of a database, for workers on many machines."""
