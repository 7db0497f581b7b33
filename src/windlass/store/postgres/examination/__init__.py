"""The examination of a PostgreSQL server and of our schema in it: by looking only."""
