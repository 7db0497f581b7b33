"""Another session locks a table of ours for longer than a lease: CREATE INDEX, VACUUM FULL, another migration."""

from contextlib import suppress

from psycopg.errors import LockNotAvailable

from tests.support.processes import let_pass
from tests.support.servers.postgres import PostgresServer
from tests.torture.faults.long_jobs import long_fault
from tests.torture.nemesis import Nemesis

LOCKS = ("ACCESS EXCLUSIVE", "ACCESS EXCLUSIVE", "SHARE")
"""SHARE is what CREATE INDEX takes: it stops writers, and no reader."""
TABLES = ("jobs", "jobs", "history", "queues")


def stranger_lock(nemesis: Nemesis, server: PostgresServer) -> None:
    table, mode = nemesis.dice.choice(TABLES), nemesis.dice.choice(LOCKS)
    with (
        long_fault(nemesis, f"{mode} on {table}") as seconds,
        server.address.connect() as stranger,
        suppress(LockNotAvailable),  # it waited for an old reader, and all others waited behind it
        stranger.transaction(),
    ):
        stranger.execute(f"SET LOCAL lock_timeout = '{seconds * 1000:.0f}ms'".encode())
        stranger.execute(f"LOCK TABLE windlass.{table} IN {mode} MODE".encode())
        let_pass(seconds)
