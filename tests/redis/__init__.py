"""What is true of the Redis store only."""
