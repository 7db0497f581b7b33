"""What only the PostgreSQL store does: its locks, its partitions, its watermarks. SQL is allowed here."""
