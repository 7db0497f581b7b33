"""The server in a browser: log-in by a token, sessions, and the documentation of the API."""
