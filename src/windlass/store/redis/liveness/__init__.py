"""Leases, workers, leadership and the rescue of dead runners' jobs."""
