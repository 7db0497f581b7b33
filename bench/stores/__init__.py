"""The measured stores: an empty one for each run, bare loops, and reading back a drain."""
