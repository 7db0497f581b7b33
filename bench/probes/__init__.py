"""Probes inside a runner: commits, round trips, profiles."""
