"""The whole lifecycle against a small reference, by random walks."""
