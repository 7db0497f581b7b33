"""Graphs of jobs: made by producers, decided about by jobs of our own types."""
