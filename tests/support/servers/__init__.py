"""Real servers for tests: found or installed, started as whoever may, and never left behind."""
