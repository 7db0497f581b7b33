"""The REST server: paths, tokens, limits, errors; in process, and as `windlass serve`."""
