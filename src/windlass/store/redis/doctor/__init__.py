"""Checks of a Redis server and of the keys in it; they only read."""
