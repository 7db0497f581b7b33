"""The roles of the PostgreSQL store: each verb a statement or a transaction."""

from collections.abc import Sequence

from windlass.core.change import JobChange
from windlass.core.ids import JobId
from windlass.core.job import Claimed, Enqueued, Job, NewJob
from windlass.core.meter import Meter, Recent
from windlass.core.moments import Micros
from windlass.core.outcome import Settlement
from windlass.core.queue import Queue, QueueSettings
from windlass.core.status import Status
from windlass.store.postgres import change, leader, leases, look, meters, operate, queues, workers
from windlass.store.postgres.access import Access
from windlass.store.postgres.admit import admit
from windlass.store.postgres.claim import Claims
from windlass.store.postgres.db import Db
from windlass.store.postgres.expire import expire, is_any_due
from windlass.store.postgres.handin import HandIn
from windlass.store.postgres.hints import Hints
from windlass.store.postgres.note import note
from windlass.store.postgres.park import needs_parking, park, unpark
from windlass.store.postgres.prune import Pruner
from windlass.store.postgres.rescue import Rescuer, end_runner
from windlass.store.postgres.settle import settle
from windlass.store.postgres.work import has_work
from windlass.store.records import (
    Admitted,
    Campaign,
    CancelRequest,
    ClaimRequest,
    Counts,
    Held,
    JobFilter,
    JobPage,
    LeaseRequest,
    Moved,
    Note,
    Renewal,
    Rescued,
    RunnerEnd,
    Settled,
    WorkerInfo,
)


class PostgresJobs:
    """The walk of a job."""

    grouped = False

    def __init__(self, access: Access, hints: Hints, hand_in: HandIn, claims: Claims) -> None:
        self._access = access
        self._hints = hints
        self._hand_in = hand_in
        self._claims = claims

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._hand_in.enqueue(self._access, jobs)

    async def enqueue_inside(
        self, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        return await self._hand_in.enqueue_inside(self._access, connection, jobs, declared)

    async def admit(self, limit: int) -> Admitted:
        admitted = await self._access.once(lambda db: admit(db, limit))
        if admitted.jobs:
            self._hints.announce()
        return admitted

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        return await self._claims.claim(self._access, request)

    async def expire(self, limit: int) -> int:
        if not await self._access.read(is_any_due):
            return 0
        return await self._access.write(lambda db: expire(db, limit))

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        settled = await settle(self._access, settlements)
        if any(settlement.status is Status.PENDING for settlement in settlements):
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


class PostgresQueues:
    """Queues and their settings."""

    def __init__(self, access: Access, hints: Hints) -> None:
        self._access = access
        self._hints = hints

    async def declare(self, declared: dict[str, QueueSettings]) -> None:
        if await self._access.read(lambda db: queues.undeclared(db, declared)):
            await self._access.write(lambda db: queues.declare(db, declared))

    async def change(self, name: str, changed: QueueSettings) -> Queue:
        return await self._access.write(lambda db: queues.change(db, name, changed))

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


class PostgresLeases:
    """Leases and proofs of life."""

    def __init__(self, access: Access, hints: Hints) -> None:
        self._access = access
        self._hints = hints
        self._rescuer = Rescuer()

    async def open(self, request: LeaseRequest) -> None:
        await self._access.write(lambda db: leases.feel_pulse(db, request.length))
        await self._access.once(lambda db: leases.open_lease(db, request))

    async def renew(self, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
        moment = await self._access.write(lambda db: leases.feel_pulse(db, length))
        return await self._access.write(lambda db: leases.renew(db, worker, runners, length, moment))

    async def end(self, ended: RunnerEnd) -> list[Rescued]:
        rescued = await self._access.write(lambda db: end_runner(db, ended))
        self._hints.announce()
        return rescued

    async def cancels(self, worker: str) -> tuple[CancelRequest, ...]:
        return await self._access.read(lambda db: leases.cancels(db, worker))

    async def rescue(self, limit: int) -> list[Rescued]:
        rescued = await self._rescuer.rescue(self._access, limit)
        if rescued:
            self._hints.announce()
        return rescued

    def vouch(self, holder: str) -> None:
        """Only time tells on this store."""

    def unvouch(self, holder: str) -> None:
        """There is nothing to end."""


class PostgresWorkers:
    """The registry of workers."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def beat(self, worker: WorkerInfo) -> None:
        async def work(db: Db) -> None:
            await workers.beat(db, worker)
            await unpark(db, worker.types)

        await self._access.write(work)

    async def forget(self, worker: str) -> None:
        await self._access.write(lambda db: workers.forget(db, worker))

    async def list(self) -> list[WorkerInfo]:
        return await self._access.read(workers.live_workers)


class PostgresLeader:
    """The coordinator's office."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def campaign(self, bid: Campaign) -> int | None:
        async def work(db: Db) -> int | None:
            term = await leader.campaign(db, bid)
            if term is not None:
                await workers.forget_dead(db)
            return term

        if await self._access.read(lambda db: leader.is_taken(db, bid)):
            return None
        await self._access.write(leases.feel_pulse)
        return await self._access.write(work)

    async def resign(self, candidate: str) -> None:
        await self._access.write(lambda db: leader.resign(db, candidate))


class PostgresSignals:
    """Wake-up hints."""

    def __init__(self, access: Access, hints: Hints) -> None:
        self._access = access
        self._hints = hints

    relayed = True

    @property
    def silence(self) -> str | None:
        return self._hints.silence

    def attend(self, queues: Sequence[str]) -> None:
        self._hints.attend(queues)

    def hear(self) -> None:
        self._hints.hear()

    def mark(self) -> int:
        return self._hints.mark()

    async def wait(self, mark: int, seconds: float) -> bool:
        return await self._hints.wait(mark, seconds)

    async def work(self, names: Sequence[str], types: Sequence[str] | None) -> bool:
        return await self._access.read(lambda db: has_work(db, names, types))


class PostgresStats:
    """Meters, added up."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def record(self, measured: Sequence[Meter]) -> None:
        await self._access.write(lambda db: meters.record(db, measured))

    async def recent(self, length: Micros) -> Recent:
        return await self._access.read(lambda db: meters.recent(db, length))

    async def oldest(self) -> dict[str, Micros]:
        return await self._access.read(meters.oldest)
