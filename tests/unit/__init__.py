"""Core, without I/O: the whole folder runs in seconds."""
