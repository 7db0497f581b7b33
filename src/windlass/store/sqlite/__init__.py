"""The SQLite store: one file, several processes, durable on power loss."""
