"""Enqueue, claim, settle, note, and statistics."""
