"""Real servers for tests: found or installed, started as an unprivileged user, and never left behind."""
