"""The bench: Windlass against the bare driver and against its peers, alternately, within one run."""
