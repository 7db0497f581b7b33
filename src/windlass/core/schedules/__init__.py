"""Schedules: cron, ticks and firing."""
