"""The examination of a Redis server and of our keys in it: by looking only."""
