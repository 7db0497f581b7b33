"""The in-memory store of tests: the SQLite store, and enqueues that wait for the commit of a caller's transaction."""
