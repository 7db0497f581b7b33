"""The store contract and its implementations."""
