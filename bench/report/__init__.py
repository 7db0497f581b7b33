"""Figures, and how they are shown: tables, documents, charts."""
