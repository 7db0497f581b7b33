"""What only the SQLite store does: its file, its locks, its threads, its plans. SQL is allowed here."""
