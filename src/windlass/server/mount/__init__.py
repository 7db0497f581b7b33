"""The server inside another app: its callers, and the prefix that it is mounted under."""
