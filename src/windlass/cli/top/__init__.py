"""windlass top: a live view of a store in the terminal. Snapshot, drawing and keyboard are separate."""
