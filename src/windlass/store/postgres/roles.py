"""The roles of the PostgreSQL store: each verb a statement or a transaction."""

from collections.abc import Sequence

from windlass.core.change import JobChange
from windlass.core.circumstances import Circumstances
from windlass.core.ids import JobId
from windlass.core.job import Claimed, Enqueued, Job, NewJob
from windlass.core.moments import SECOND, Micros
from windlass.core.outcome import Settlement
from windlass.core.queue import Queue, QueueSettings
from windlass.store.clock import since_boot
from windlass.store.postgres import change, look, operate, queues
from windlass.store.postgres.access import Access
from windlass.store.postgres.admit import admit
from windlass.store.postgres.age import age
from windlass.store.postgres.circumstances import circumstances
from windlass.store.postgres.claim import Claims
from windlass.store.postgres.expire import expire, is_any_due
from windlass.store.postgres.handin import HandIn
from windlass.store.postgres.hints import Hints
from windlass.store.postgres.laning import Laning
from windlass.store.postgres.note import note
from windlass.store.postgres.park import needs_parking, park
from windlass.store.postgres.prune import Pruner
from windlass.store.postgres.settle import settle
from windlass.store.records import (
    Admitted,
    ClaimRequest,
    Counts,
    Held,
    JobFilter,
    JobPage,
    Moved,
    Note,
    Settled,
)

SPARED_EVERY: Micros = SECOND // 10
"""So often others are told that a claim has let in more than it took: who is awake needs no telling."""


class PostgresJobs:
    """The walk of a job."""

    grouped = False

    def __init__(self, access: Access, hints: Hints, hand_in: HandIn, claims: Claims) -> None:
        self._access = access
        self._hints = hints
        self._hand_in = hand_in
        self._claims = claims
        self._laning = Laning()
        self._announced: Micros = 0

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._hand_in.enqueue(self._access, jobs)

    async def enqueue_inside(
        self, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        return await self._hand_in.enqueue_inside(self._access, connection, jobs, declared)

    async def admit(self, limit: int) -> Admitted:
        admitted = await self._access.once(lambda db: admit(db, limit))
        await self._laning.go_on(self._access)
        if await self._claims.lines.look(self._access) or admitted.jobs:
            self._hints.announce()
        return admitted

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        jobs = await self._claims.claim(self._access, request)
        if self._claims.spare and since_boot() - self._announced >= SPARED_EVERY:
            self._announced = since_boot()
            self._hints.announce()
        return jobs

    async def age(self, limit: int) -> int:
        return await self._access.write(lambda db: age(db, limit))

    async def expire(self, limit: int) -> int:
        if not await self._access.read(is_any_due):
            return 0
        return await self._access.write(lambda db: expire(db, limit))

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        settled, ready = await settle(self._access, settlements)
        if ready:
            self._hints.announce()
        return settled

    async def note(self, notes: Sequence[Note]) -> None:
        if not notes:
            return
        await self._access.write(lambda db: note(db, notes))

    async def held(self, runner: str) -> list[Held]:
        rows = await self._access.read(lambda db: db.rows("held", {"runner": runner}))
        return [Held(*row) for row in rows]

    async def park(self) -> dict[str, int]:
        if not await self._access.read(needs_parking):
            return {}
        return await self._access.write(park)


class PostgresOperator:
    """What people do with jobs."""

    def __init__(self, access: Access, hints: Hints) -> None:
        self._access = access
        self._hints = hints
        self._pruner = Pruner()

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        return await self._access.read(lambda db: look.get(db, ids))

    async def outcomes(self, ids: Sequence[JobId]) -> list[str | None]:
        return await self._access.read(lambda db: look.outcomes(db, ids))

    async def cancel(self, ids: Sequence[JobId], reason: str) -> list[Moved | None]:
        return await self._access.write(lambda db: operate.cancel(db, ids, reason))

    async def retry(self, ids: Sequence[JobId]) -> list[Moved | None]:
        moved = await self._access.write(lambda db: operate.retry(db, ids))
        self._hints.announce()
        return moved

    async def run_now(self, ids: Sequence[JobId]) -> list[Moved | None]:
        moved = await self._access.write(lambda db: change.run_now(db, ids))
        self._hints.announce()
        return moved

    async def change(self, ids: Sequence[JobId], changed: JobChange) -> list[Moved | None]:
        moved = await self._access.write(lambda db: change.change(db, ids, changed))
        self._hints.announce()
        return moved

    async def delete(self, ids: Sequence[JobId]) -> list[Moved | None]:
        return await self._access.write(lambda db: operate.delete(db, ids))

    async def select(self, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
        return await self._access.read(lambda db: look.select_ids(db, wanted, limit, after))

    async def prune(self, limit: int) -> Sequence[JobId]:
        return await self._pruner.prune(self._access, limit)

    async def counts(self) -> Counts:
        return await self._access.read(look.counts)

    async def failures(self, limit: int) -> list[Job]:
        return await self._access.read(lambda db: look.failures(db, limit))

    async def list(self, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
        return await self._access.read(lambda db: look.list_jobs(db, wanted, limit, cursor))

    async def circumstances(self, id: JobId) -> Circumstances | None:
        return await self._access.read(lambda db: circumstances(db, id))


class PostgresQueues:
    """Queues and their settings."""

    def __init__(self, access: Access, hints: Hints) -> None:
        self._access = access
        self._hints = hints

    async def declare(self, declared: dict[str, QueueSettings]) -> None:
        if await self._access.read(lambda db: queues.undeclared(db, declared)):
            await self._access.write(lambda db: queues.declare(db, declared))

    async def change(self, name: str, changed: QueueSettings, was: QueueSettings | None = None) -> Queue:
        queue = await self._access.write(lambda db: queues.change(db, name, changed, was))
        self._hints.announce()
        return queue

    async def pause(self, name: str, length: Micros | None) -> Queue:
        return await self._access.write(lambda db: queues.pause(db, name, length))

    async def resume(self, name: str) -> Queue:
        queue = await self._access.write(lambda db: queues.resume(db, name))
        self._hints.announce()
        return queue

    async def close(self, name: str) -> Queue:
        return await self._access.write(lambda db: queues.close(db, name))

    async def open(self, name: str) -> Queue:
        return await self._access.write(lambda db: queues.open_(db, name))

    async def list(self) -> list[Queue]:
        return await self._access.read(queues.all_queues)
