"""The command line: tables for people, `--json` for programs, and no traceback for a user's mistake."""
