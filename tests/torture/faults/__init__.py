"""Faults that last longer than a lease and hit all processes alike, one kind in each module."""
