"""Storing new jobs: one call, a large batch, or several callers together."""
