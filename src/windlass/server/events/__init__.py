"""The event stream: one look at the store for all listeners of a server."""
