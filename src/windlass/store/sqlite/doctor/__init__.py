"""The examination of a database file, which changes nothing."""
