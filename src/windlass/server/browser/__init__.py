"""What people see in a browser: log-in by a token, a session, and pages."""
