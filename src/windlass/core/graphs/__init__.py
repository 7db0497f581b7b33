"""Graphs: flows of nodes that wait for each other. Pure."""
