"""Hints about new work and about completed jobs."""
