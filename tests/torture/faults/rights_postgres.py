"""The workers' role loses rights on a table for longer than a lease, and gets them back."""

from tests.support.processes import let_pass
from tests.support.servers.postgres import PostgresServer
from tests.torture.faults.long_jobs import long_fault
from tests.torture.nemesis import Nemesis
from tests.torture.roles import ROLE

TABLES = ("jobs", "leases", "queues", "history")
RIGHTS = ("ALL", "INSERT, UPDATE, DELETE")


def rights_revoked(nemesis: Nemesis, server: PostgresServer) -> None:
    table, rights = nemesis.dice.choice(TABLES), nemesis.dice.choice(RIGHTS)
    with long_fault(nemesis, f"{rights} on {table} revoked") as seconds:
        server.address.execute(f"REVOKE {rights} ON windlass.{table} FROM {ROLE}")
        let_pass(seconds)
        server.address.execute(f"GRANT ALL ON windlass.{table} TO {ROLE}")
