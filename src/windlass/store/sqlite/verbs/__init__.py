"""The verbs, each with its statements beside it."""
