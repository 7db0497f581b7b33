"""The bench of `windlass bench`: enqueue, drain and latency on a user's own store."""
