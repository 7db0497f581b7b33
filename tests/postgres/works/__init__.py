"""Real workers on PostgreSQL, watched from the server's side."""
