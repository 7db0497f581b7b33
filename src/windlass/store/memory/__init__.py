"""What the in-memory store of tests adds to SQLite: enqueueing when a caller's own transaction commits."""
