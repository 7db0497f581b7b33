"""What only the PostgreSQL store does: its locks, its shelves, its floors. SQL is allowed here."""
