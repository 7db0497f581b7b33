"""Read-only checks of a database file."""
