"""Leases, leadership, workers, and the rescue of the jobs of dead runners."""
