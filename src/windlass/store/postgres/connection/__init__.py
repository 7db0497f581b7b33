"""Connections to the server: address, sessions, pool, retries, hints, and the transactions of callers."""
