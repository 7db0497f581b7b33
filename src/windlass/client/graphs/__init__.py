"""Graphs of jobs: stored by producers, and driven by jobs of Windlass's own types."""
