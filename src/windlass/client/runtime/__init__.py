"""What runs the verbs: event loops, the store handle, result waiters, settings."""
