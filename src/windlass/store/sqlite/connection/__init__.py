"""Connections to the database file: drivers, threads, companion files, and the order of writers."""
