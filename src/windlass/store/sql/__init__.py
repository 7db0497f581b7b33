"""Verbs and statements that the SQLite and PostgreSQL stores share."""
