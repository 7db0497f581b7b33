"""Leases, leadership, workers, and the rescue of what dead runners held."""
