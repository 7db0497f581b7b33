"""The PostgreSQL store: a server and its roles."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from windlass.store.clock import Clock
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.conflicts import Conflicts
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Texts
from windlass.store.postgres.connection.hints import Hints
from windlass.store.postgres.connection.repeated_reads import repeat
from windlass.store.postgres.connection.server import CONNECT_SECONDS, ConnectionRole, Server
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.connection.trouble import TROUBLE, translate
from windlass.store.postgres.limits.key_queue import KeySweeper
from windlass.store.postgres.limits.watermarks import Watermarks
from windlass.store.postgres.migrate import Obstacle, check_schema, with_locks
from windlass.store.postgres.migrate_stepwise import run_repeatable
from windlass.store.postgres.roles import (
    PostgresDocuments,
    PostgresJobs,
    PostgresLeader,
    PostgresLeases,
    PostgresOperator,
    PostgresQueues,
    PostgresSchedules,
    PostgresSignals,
    PostgresStats,
    PostgresWorkers,
)
from windlass.store.postgres.verbs.claim import Claims
from windlass.store.postgres.verbs.enqueue_batch import Enqueuer
from windlass.store.postgres.verbs.enqueue_direct import begins_without_loop
from windlass.store.postgres.verbs.prune import Pruner
from windlass.store.postgres.verbs.raise_buckets import learn_buckets
from windlass.store.records import ProcessRole

T = TypeVar("T")

SUPERVISOR_SECONDS = 5.0
"""The deadline of a supervisor, which must renew leases and not block on a dead connection."""
MIGRATION_SECONDS = 600.0
"""The deadline of a migration, unless the store has one: a step may rewrite a large table."""
CONNECTIONS = 2
"""Connections per process, unless the address says otherwise; a runner claims on one and settles on the other."""
CONNECTION_ROLES = {
    ProcessRole.CLIENT: ConnectionRole("client", CONNECTIONS),
    ProcessRole.RUNNER: ConnectionRole("runner", CONNECTIONS),
    ProcessRole.COORDINATOR: ConnectionRole("coordinator", 1),
    ProcessRole.SUPERVISOR: ConnectionRole("supervisor", 1),
}
"""A supervisor has another connection, on which it renews leases; it listens on the one here."""


class PostgresStore:
    """A store in one schema of a database."""

    works_without_loop = False

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
        self._is_client = opener is ProcessRole.CLIENT
        server = Server(address, shown, clock, CONNECTION_ROLES[opener])
        renewals = server
        if opener is ProcessRole.SUPERVISOR:
            # A call that waits for a lock on another table must not delay a renewal.
            renewals = Server(msgspec.structs.replace(address, connections=1), shown, clock, CONNECTION_ROLES[opener])
            renewals.failpoints = server.failpoints
        hints = Hints(server, listening=opener is ProcessRole.SUPERVISOR)
        if deadline is None and opener in (ProcessRole.SUPERVISOR, ProcessRole.COORDINATOR):
            deadline = SUPERVISOR_SECONDS
        self._set_up(server, renewals, hints, Enqueuer(hints), deadline)

    def _set_up(
        self, server: Server, renewals: Server, hints: Hints, enqueuer: Enqueuer, deadline: float | None
    ) -> None:
        access = self._access = Access(server, deadline)
        self._migrating = access if deadline else Access(server, MIGRATION_SECONDS)
        self._server = server
        self._renewals = renewals
        self._hints = hints
        self._enqueuer = enqueuer
        self._watermarks = Watermarks()
        self._sweeper = KeySweeper()
        self._pruner = Pruner()
        named = _as_it_is if server.failpoints is None else server.failpoints.named
        claims = Claims(hints.announce, server)
        self.jobs = named(PostgresJobs(access, hints, enqueuer, claims))
        self.operator = named(PostgresOperator(access, hints, self._pruner))
        self.queues = named(PostgresQueues(access, hints))
        self.schedules = named(PostgresSchedules(access, hints, enqueuer))
        self.leases = named(PostgresLeases(access, Access(renewals, deadline), hints))
        self.workers = named(PostgresWorkers(access, hints))
        self.leader = named(PostgresLeader(access, hints))
        self.signals = named(PostgresSignals(access, hints, claims))
        self.stats = named(PostgresStats(access, hints))
        self.documents = named(PostgresDocuments(access, hints))

    def with_timeout(self, seconds: float) -> "PostgresStore":
        """A view of the same server and connections with another deadline."""
        view = object.__new__(PostgresStore)
        view.address = self.address
        view._is_client = self._is_client
        view._set_up(self._server, self._renewals, self._hints, self._enqueuer, seconds)
        return view

    @property
    def begins_without_loop(self) -> bool:
        """Whether a call can start without an event loop: in clients only, since runners need their connections."""
        return self._is_client and begins_without_loop(self._server)

    async def tidy(self) -> None:
        """Raise watermarks, sweep concurrency keys, and continue pruning."""
        if self._server.texts.profile.has_buckets:
            await self._access.read(learn_buckets)
        await self._watermarks.tidy(self._access)
        await self._sweeper.sweep_some(self._access)
        await self._pruner.catch_up(self._access)

    async def migrate(self) -> list[str]:
        """Connect, which applies migrations; returns the names of the steps that this store applied."""
        await self._migrating.read(lambda db: db.now())
        return list(self._server.applied)

    def count_conflicts(self, count: Callable[[], None]) -> None:
        """Call `count` for each conflict after which a call is repeated."""
        self._server.conflicts.on_conflict = self._renewals.conflicts.on_conflict = count

    async def check_schema(self) -> None:
        """Raise SchemaMismatch if a breaking migration was applied since this store was opened."""
        await self._access.read(check_schema)

    async def close(self) -> None:
        self._enqueuer.direct.close()
        await self._hints.close()
        await self._renewals.close()
        await self._server.close()


def _as_it_is(role: T) -> T:
    return role


async def discard(address: Address, shown: str) -> None:
    """Drop the schema if it exists."""
    drop = f'DROP SCHEMA IF EXISTS "{address.schema}" CASCADE'
    try:
        session = await repeat(
            lambda: connect(address.dsn, CONNECT_SECONDS, pooled=None, profile=address.profile), Conflicts()
        )
        try:
            if not address.profile.advisory_locks:  # such a profile cannot change its schema in a transaction either
                await run_repeatable(session, drop)
                return
            texts = Texts(address.schema, None)
            await with_locks(session, texts, Session.transaction, lambda: session.script(drop), Obstacle())
        finally:
            await session.close()
    except TROUBLE as error:
        raise translate(error, shown) from error
