"""Tests of what is special to the Redis store."""
