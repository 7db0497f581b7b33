"""The demo: a tour on a temporary SQLite file, with real processes, a real kill and a recount."""
