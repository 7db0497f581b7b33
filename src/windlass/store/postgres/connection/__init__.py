"""Reaching the server: address, sessions, pool, retries, and the transactions of callers."""
