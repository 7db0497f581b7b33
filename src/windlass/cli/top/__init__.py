"""windlass top: a live view of a store, in the terminal. Gathering, drawing and the keyboard are apart."""
