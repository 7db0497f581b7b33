"""Blobs: payloads and results that are too large for a row, kept beside the store."""
