"""Faults of a PostgreSQL server, which hit all processes, besides those of workers and producers."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from tests.support.processes import let_pass
from tests.support.servers.postgres import Mode, PostgresServer
from tests.torture.faults.choice import Weighted
from tests.torture.nemesis import RemoteNemesis
from tests.torture.roles import ROLE
from tests.torture.yard import Yard
from windlass import WindlassError

_OURS = "starts_with(application_name, 'windlass') AND pid <> pg_backend_pid()"
SHORT = "20ms"
"""A statement_timeout that most statements keep, and some do not."""


class ServerNemesis(RemoteNemesis):
    """Kills connections and the server itself, cuts statements short, and holds a snapshot all the time."""

    def __init__(self, yard: Yard, seed: int, server: PostgresServer, role: str = ROLE) -> None:
        self._server = server
        self._role = role
        super().__init__(yard, seed)
        # Tells the checker that a cut claim may hide jobs from others.
        yard.history.write("skips_locked")

    def _short_faults(self) -> Weighted:
        return {
            **super()._short_faults(),
            "kill_connections": (5, self._kill_connections),
            "restart_server": (3, self._restart_server),
            "cut_statements_short": (2, self._cut_statements_short),
        }

    @contextmanager
    def old_snapshot(self) -> Iterator[None]:
        """A session reads for as long as the server lives: nothing that is dead now can be cleaned away."""
        with suppress(psycopg.OperationalError), psycopg.connect(self._server.dsn()) as reader:
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM windlass.jobs")
            yield

    def _kill_connections(self, place: int) -> None:
        share = self.dice.choice([0.2, 0.5, 1])
        with self.fault("kill connections", []):
            self._server.address.execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OURS} AND random() < %s", share
            )

    def _restart_server(self, place: int) -> None:
        with self.fault("stop the server", []):
            self._server.stop(self.dice.choice([Mode.IMMEDIATE, Mode.IMMEDIATE, Mode.FAST]))
            let_pass(self.dice.choice([0, 0.5, 4]))
            self._server.start()

    def _cut_statements_short(self, place: int) -> None:
        """For new connections; a runner that cannot renew while others can loses its lease, and that is right."""
        every_worker = [pid for worker in self.workers for pid in worker.tree()]
        with self.fault("cut statements short", every_worker):
            self._server.address.execute(f"ALTER ROLE {self._role} SET statement_timeout = '{SHORT}'")
            self._kill_connections(place)
            let_pass(self.dice.uniform(0.5, 2))
            # Recorded by a process that it does not hit.
            with self._server.address.connect() as peace:
                peace.execute("SET statement_timeout = 0")
                peace.execute(f"ALTER ROLE {self._role} RESET statement_timeout".encode())
                peace.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OURS}")

    def _cancel_some(self, place: int) -> None:
        with suppress(WindlassError):  # the server may be away
            super()._cancel_some(place)
