"""What only the Redis store has."""
