"""Statistics: meters, samples and timelines."""
