"""The examination of a database file: from outside, by eye, and without leaving a trace."""
