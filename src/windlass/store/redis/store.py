"""The Redis store: a server, or a cluster of them, and its roles."""

from windlass.store.clock import Clock
from windlass.store.opener import Opener
from windlass.store.redis.access import Access
from windlass.store.redis.address import Address
from windlass.store.redis.hints import Hints
from windlass.store.redis.roles import RedisJobs, RedisOperator, RedisQueues, RedisSchedules
from windlass.store.redis.server import Server
from windlass.store.redis.tidy import tidy
from windlass.store.redis.upkeep import RedisLeader, RedisLeases, RedisSignals, RedisStats, RedisWorkers

SUPERVISOR_SECONDS = 5.0
"""A supervisor must not wait for long on a line that is dead without a word: it has leases to renew."""


class RedisStore:
    """What is under one prefix."""

    loopless = True

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
        server = Server(address, shown, clock)
        if deadline is None and opener in (Opener.SUPERVISOR, Opener.COORDINATOR):
            deadline = SUPERVISOR_SECONDS
        self._share(server, Hints(server), deadline)

    def _share(self, server: Server, hints: Hints, deadline: float | None) -> None:
        access = self._access = Access(server, deadline)
        self._server = server
        self._hints = hints
        named = server.named_role
        self.jobs = named(RedisJobs(access))
        self.operator = named(RedisOperator(access))
        self.queues = named(RedisQueues(access))
        self.schedules = named(RedisSchedules(access))
        self.leases = named(RedisLeases(access))
        self.workers = named(RedisWorkers(access))
        self.leader = named(RedisLeader(access))
        self.signals = named(RedisSignals(access, hints))
        self.stats = named(RedisStats(access))

    def bounded(self, seconds: float) -> "RedisStore":
        """Another view of the same server and the same connections."""
        view = object.__new__(RedisStore)
        view.address = self.address
        view._share(self._server, self._hints, seconds)
        return view

    async def tidy(self) -> None:
        """Finish or clear away what others have left half done."""
        await tidy(self._access)

    async def migrate(self) -> list[str]:
        """Opening is migrating: the names of what this store applied."""
        await self._access.be_known()
        return list(self._server.applied)

    async def close(self) -> None:
        """Hang up."""
        self._server.closed = True
        await self._hints.close()
        await self._server.wire.close()
