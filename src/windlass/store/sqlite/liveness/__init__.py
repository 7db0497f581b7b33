"""Leases, workers, the coordinator, and the locks that show that a process is alive."""
