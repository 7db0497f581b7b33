"""The store contract, one file per verb; every store passes all of it."""
