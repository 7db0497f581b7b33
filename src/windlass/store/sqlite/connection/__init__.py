"""Connections to the database file: drivers, threads, files, and the order of writers."""
