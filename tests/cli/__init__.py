"""The command line: what it prints, and how it ends."""
