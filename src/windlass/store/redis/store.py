"""The Redis store: a server, or a cluster of them, and its roles."""

from windlass.store.clock import Clock
from windlass.store.records import ProcessRole
from windlass.store.redis.connection.access import MAX_CALL, Access
from windlass.store.redis.connection.address import Address
from windlass.store.redis.connection.errors import DRIVER_ERRORS, translate
from windlass.store.redis.connection.server import Server
from windlass.store.redis.duties.queue_rotation import QueueRotation
from windlass.store.redis.duties.tidy import Repairs, tidy
from windlass.store.redis.records.keys import GLOBAL_KEYS, QUEUE_KEYS
from windlass.store.redis.records.migrate import check_schema
from windlass.store.redis.roles import (
    RedisDocuments,
    RedisJobs,
    RedisLeader,
    RedisLeases,
    RedisOperator,
    RedisQueues,
    RedisSchedules,
    RedisSignals,
    RedisStats,
    RedisWorkers,
)
from windlass.store.redis.signals.hints import Hints

SUPERVISOR_SECONDS = 5.0
"""A supervisor must not wait long on a dead connection: it has leases to renew."""


class RedisStore:
    """The store under one prefix."""

    works_without_loop = True
    begins_without_loop = False

    def __init__(
        self,
        address: Address,
        shown: str,
        *,
        clock: Clock | None = None,
        opener: ProcessRole = ProcessRole.CLIENT,
        deadline: float | None = None,
    ) -> None:
        """`deadline` bounds every call."""
        self.address = address.url
        server = Server(address, shown, clock)
        if deadline is None and opener in (ProcessRole.SUPERVISOR, ProcessRole.COORDINATOR):
            deadline = SUPERVISOR_SECONDS
        self._repairs = Repairs()
        self._rotation = QueueRotation()
        self._share(server, Hints(server), deadline)

    def _share(self, server: Server, hints: Hints, deadline: float | None) -> None:
        access = self._access = Access(server, deadline)
        self._server = server
        self._hints = hints
        named = server.with_failpoints
        self.jobs = named(RedisJobs(access, self._rotation))
        self.operator = named(RedisOperator(access))
        self.queues = named(RedisQueues(access))
        self.schedules = named(RedisSchedules(access))
        hasty = access.background()
        self.leases = named(RedisLeases(hasty))
        self.workers = named(RedisWorkers(hasty))
        self.leader = named(RedisLeader(hasty))
        self.signals = named(RedisSignals(hasty, hints))
        self.stats = named(RedisStats(hasty))
        self.documents = named(RedisDocuments(access))

    def with_timeout(self, seconds: float) -> "RedisStore":
        """Another view of the same server and the same connections."""
        view = object.__new__(RedisStore)
        view.address = self.address
        view._repairs = self._repairs
        view._rotation = self._rotation
        view._share(self._server, self._hints, seconds)
        return view

    async def tidy(self) -> None:
        """Finish or remove what dead processes left half done."""
        await tidy(self._access.background(), self._repairs, self._rotation)

    async def migrate(self) -> list[str]:
        """Open the store, which migrates it: the names of the steps that this process applied."""
        await self._access.ensure_open()
        return list(self._server.applied)

    async def check_schema(self) -> None:
        """Check that no breaking migration was applied since this store was opened."""
        await check_schema(self._access)

    async def close(self) -> None:
        """Close all connections."""
        self._server.closed = True
        await self._hints.close()
        await self._server.wire.close()


async def discard(address: Address, shown: str) -> None:
    """Drop the keys; in processes that still use them, calls fail because the store was emptied."""
    server = Server(address, shown, None)
    (names,) = server.keys.global_keys(("queues",))
    try:
        for queue in await server.wire.command("SMEMBERS", names, seconds=MAX_CALL):
            keys = server.keys.of_queue(queue.decode(), tuple(QUEUE_KEYS))
            await server.wire.command("UNLINK", *keys, seconds=MAX_CALL)
        await server.wire.command("UNLINK", *server.keys.global_keys(tuple(GLOBAL_KEYS)), seconds=MAX_CALL)
    except DRIVER_ERRORS as error:
        raise translate(error, shown) from error
    finally:
        await server.wire.close()
