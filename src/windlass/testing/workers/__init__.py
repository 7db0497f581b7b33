"""Rules that a worker in any language has to follow, and a program that checks them: `windlass check-worker`."""
