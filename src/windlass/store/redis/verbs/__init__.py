"""The verbs of a runner: claim, settle, note, held."""
