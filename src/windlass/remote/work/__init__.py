"""A store behind a REST server, as far as a worker needs one."""
