"""The verbs, each module with its statements in the .sql file beside it."""
