"""Schedules, and the jobs of their ticks."""
