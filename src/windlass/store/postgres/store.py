"""The PostgreSQL store: a server and its roles."""

from typing import TypeVar

from windlass.store.clock import Clock
from windlass.store.opener import Opener
from windlass.store.postgres.access import Access, Part, Server
from windlass.store.postgres.address import Address
from windlass.store.postgres.claim import Claims
from windlass.store.postgres.floors import Floors
from windlass.store.postgres.handin import HandIn
from windlass.store.postgres.hints import Hints
from windlass.store.postgres.patrol import Patrol
from windlass.store.postgres.roles import PostgresJobs, PostgresOperator, PostgresQueues
from windlass.store.postgres.timing import PostgresSchedules
from windlass.store.postgres.upkeep import (
    PostgresLeader,
    PostgresLeases,
    PostgresSignals,
    PostgresStats,
    PostgresWorkers,
)

T = TypeVar("T")

SUPERVISOR_SECONDS = 5.0
"""A supervisor must not wait for long on a line that is dead without a word: it has leases to renew."""
CONNECTIONS = 2
"""Of a process, unless its address says otherwise; a runner claims on one of them while it settles on the other."""
PARTS = {
    Opener.CLIENT: Part("client", CONNECTIONS),
    Opener.RUNNER: Part("runner", CONNECTIONS),
    Opener.COORDINATOR: Part("coordinator", 1),
    Opener.SUPERVISOR: Part("supervisor", 1),
}
"""A supervisor needs one: it listens on it."""


class PostgresStore:
    """One schema of a database."""

    loopless = False

    def __init__(
        self,
        address: Address,
        shown: str,
        *,
        clock: Clock | None = None,
        opener: Opener = Opener.CLIENT,
        deadline: float | None = None,
    ) -> None:
        """`deadline` bounds every call."""
        self.address = address.url
        server = Server(address, shown, clock, PARTS[opener])
        hints = Hints(server, listening=opener is Opener.SUPERVISOR)
        if deadline is None and opener in (Opener.SUPERVISOR, Opener.COORDINATOR):
            deadline = SUPERVISOR_SECONDS
        self._share(server, hints, HandIn(hints), deadline)

    def _share(self, server: Server, hints: Hints, hand_in: HandIn, deadline: float | None) -> None:
        access = self._access = Access(server, deadline)
        self._server = server
        self._hints = hints
        self._hand_in = hand_in
        self._floors = Floors()
        self._patrol = Patrol()
        named = _as_it_is if server.failpoints is None else server.failpoints.named
        claims = Claims(hints.announce)
        self.jobs = named(PostgresJobs(access, hints, hand_in, claims))
        self.operator = named(PostgresOperator(access, hints))
        self.queues = named(PostgresQueues(access, hints))
        self.schedules = named(PostgresSchedules(access, hand_in))
        self.leases = named(PostgresLeases(access, hints))
        self.workers = named(PostgresWorkers(access))
        self.leader = named(PostgresLeader(access))
        self.signals = named(PostgresSignals(access, hints, claims))
        self.stats = named(PostgresStats(access))

    def bounded(self, seconds: float) -> "PostgresStore":
        """Another view of the same server and the same connections."""
        view = object.__new__(PostgresStore)
        view.address = self.address
        view._share(self._server, self._hints, self._hand_in, seconds)
        return view

    async def tidy(self) -> None:
        """Raise the floors from which claims and admissions begin; look along the lines for keys."""
        await self._floors.tidy(self._access)
        await self._patrol.go_on(self._access)

    async def migrate(self) -> list[str]:
        """Opening is migrating: the names of what this store applied."""
        await self._access.read(lambda db: db.now())
        return list(self._server.applied)

    async def close(self) -> None:
        """Hang up."""
        await self._hints.close()
        await self._server.close()


def _as_it_is(role: T) -> T:
    return role
