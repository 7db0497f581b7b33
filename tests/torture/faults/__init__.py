"""Faults that last longer than a lease and hit everybody alike, one kind in each module."""
