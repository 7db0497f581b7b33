"""Figures, tables, documents and charts."""
