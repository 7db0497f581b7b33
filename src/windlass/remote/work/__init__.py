"""The part of a store that a worker needs, behind a REST server."""
