"""The role of workers and producers on PostgreSQL: one that can lose rights, as no superuser can."""

from tests.support.servers.postgres import PostgresServer

ROLE = "plain"
"""It owns the tables."""


def make_role(server: PostgresServer) -> str:
    """The address of the server for that role."""
    server.address.execute(f"CREATE ROLE {ROLE} LOGIN")
    server.address.execute(f"GRANT CREATE ON DATABASE postgres TO {ROLE}")
    return server.dsn().replace("//windlass@", f"//{ROLE}@")
