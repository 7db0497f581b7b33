"""Figures of the dashboard: plots, histograms, sparklines, graphs, trees, and the history of a job."""
