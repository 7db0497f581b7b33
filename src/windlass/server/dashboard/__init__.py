"""The dashboard: HTML pages on the operations of the REST server, with the rights of the same tokens."""
