"""Figures of the dashboard: histograms, sparklines, the states of a job."""
