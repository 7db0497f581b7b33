"""Listeners on events. Nobody calls them but by emitting."""
