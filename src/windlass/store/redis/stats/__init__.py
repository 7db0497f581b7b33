"""Meters and samples."""
