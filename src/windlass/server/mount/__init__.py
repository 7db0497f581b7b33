"""The server mounted in another app: its callers, and its prefix."""
