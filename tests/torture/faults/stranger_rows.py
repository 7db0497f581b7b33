"""Another session holds rows of jobs for longer than a lease: SELECT FOR UPDATE, and a transaction left open."""

from tests.support.processes import let_pass
from tests.support.servers.postgres import PostgresServer
from tests.torture.faults.long_jobs import long_fault
from tests.torture.nemesis import Nemesis

ROWS = ("status = 'running'", "status = 'running'", "status = 'pending'", "true")


def stranger_rows(nemesis: Nemesis, server: PostgresServer) -> None:
    rows = nemesis.dice.choice(ROWS)
    with (
        long_fault(nemesis, f"rows locked where {rows}", hides=True) as seconds,
        server.address.connect() as stranger,
        stranger.transaction(),
    ):
        stranger.execute(f"SELECT FROM windlass.jobs WHERE {rows} FOR UPDATE SKIP LOCKED".encode())
        let_pass(seconds)
