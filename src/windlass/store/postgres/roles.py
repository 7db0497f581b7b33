"""The roles of the PostgreSQL store: verbs bound to a server, each a statement or a transaction."""

import contextlib
from collections.abc import Sequence

from windlass.core.flow.queue import QueueSettings
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed, Enqueued, Job, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND, Micros
from windlass.core.schedules.firing import Fired, Firing
from windlass.core.schedules.schedule import ScheduleSettings
from windlass.core.stats.meter import Meter
from windlass.core.why.facts import WhyFacts
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.contract_upkeep import OnEnded
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.caller_transaction import run_inside
from windlass.store.postgres.connection.hints import Hints
from windlass.store.postgres.limits.queue_limits import has_work
from windlass.store.postgres.limits.tenant_queues import TenantQueueAssigner
from windlass.store.postgres.liveness import leases, workers
from windlass.store.postgres.liveness import workers as leadership
from windlass.store.postgres.liveness.rescue import Rescuer, end_runner
from windlass.store.postgres.verbs import operator_verbs, park
from windlass.store.postgres.verbs.admit import admit, expire, is_any_due, oldest
from windlass.store.postgres.verbs.admit import age as age_jobs
from windlass.store.postgres.verbs.change import change
from windlass.store.postgres.verbs.claim import Claims
from windlass.store.postgres.verbs.completion_watcher import PostgresCompletionWatcher
from windlass.store.postgres.verbs.ended import dead_ends, ended
from windlass.store.postgres.verbs.enqueue_batch import Enqueuer
from windlass.store.postgres.verbs.fire import fire_all
from windlass.store.postgres.verbs.prune import Pruner
from windlass.store.postgres.verbs.settle import note, settle
from windlass.store.records import (
    Admitted,
    Campaign,
    ClaimRequest,
    LeaseRequest,
    Note,
    Renewal,
    Rescued,
    RunnerEnd,
    Settled,
    WorkerInfo,
    known_types,
)
from windlass.store.sql import read_jobs
from windlass.store.sql.documents import DocumentVerbs
from windlass.store.sql.queues import QueueVerbs
from windlass.store.sql.schedules import ScheduleVerbs, declare_missing
from windlass.store.sql.session import SharedRole, announcing, reading, writing
from windlass.store.sql.stats import StatsVerbs, record
from windlass.store.sql.why_facts import why_facts

ANNOUNCE_EVERY: Micros = SECOND // 10
"""How often a claim that admitted more jobs than it took wakes other workers: those that are awake need no hint."""


class Role(SharedRole):
    """Verbs that share an access and the hints."""

    def __init__(self, access: Access, hints: Hints) -> None:
        self._access = self._sessions = access
        self._hints = hints

    def _announce(self) -> None:
        self._hints.announce()


class PostgresJobs(Role):
    """The life of a job: enqueue, admit, claim, settle."""

    grouped = False
    parked_types = reading(park.parked_types)

    def __init__(self, access: Access, hints: Hints, enqueuer: Enqueuer, claims: Claims) -> None:
        super().__init__(access, hints)
        self._enqueuer = enqueuer
        self._claims = claims
        self._urgent = access.urgent()
        self._assigner = TenantQueueAssigner()
        self._announced: Micros = 0

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._enqueuer.enqueue(self._access, jobs)

    async def enqueue_inside(
        self, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        return await self._enqueuer.enqueue_inside(self._access, connection, jobs, declared)

    async def get_inside(self, connection: object, ids: Sequence[JobId]) -> list[Job | None]:
        await self._enqueuer.prepare_inside(self._access, connection)
        return await run_inside(self._access.server, connection, lambda db: read_jobs.get(db, ids))

    async def admit(self, limit: int, queues: Sequence[str] | None = None) -> Admitted:
        admitted = await self._access.once(lambda db: admit(db, limit))
        await self._assigner.assign_some(self._access)
        if await self._claims.key_queues.admit_dirty(self._access) or admitted.jobs:
            self._hints.announce()
        return admitted

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        jobs = await self._claims.claim(self._urgent, request)
        if self._claims.admitted_more and since_boot() - self._announced >= ANNOUNCE_EVERY:
            self._announced = since_boot()
            self._hints.announce()
        return jobs

    async def expire(self, limit: int) -> Sequence[JobId]:
        if not await self._access.read(is_any_due):
            return ()
        return await self._access.write(lambda db: expire(db, limit))

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        settled, ready = await settle(self._access, settlements)
        self._claims.open.end(each.id for each in settlements)
        if ready:
            self._hints.announce()
        return settled

    async def note(self, notes: Sequence[Note]) -> None:
        if notes:
            await self._access.ending_waits().write(lambda db: note(db, notes))

    async def park(self) -> dict[str, int]:
        if await park.unpark_known(self._access):
            self._hints.announce()
        if not await self._access.read(park.needs_parking):
            return {}
        return await self._access.write(park.park)

    age = writing(age_jobs)
    held = reading(read_jobs.held)


class PostgresOperator(Role, read_jobs.ReadVerbs):
    """What operators and programs do with jobs."""

    def __init__(self, access: Access, hints: Hints, pruner: Pruner) -> None:
        super().__init__(access, hints)
        self._pruner = pruner

    async def prune(self, limit: int) -> Sequence[JobId]:
        return await self._pruner.prune(self._access, limit)

    async def why_facts(self, id: JobId) -> WhyFacts | None:
        return await self._access.read(lambda db: why_facts(db, id, workers.live_workers))

    ended = reading(ended)
    dead_ends = reading(dead_ends)
    cancel = writing(operator_verbs.cancel)
    delete = writing(operator_verbs.delete)
    retry = announcing(operator_verbs.retry)
    run_now = announcing(operator_verbs.run_now)
    change = announcing(change)


class PostgresQueues(Role, QueueVerbs):
    """Queues and their settings."""


class PostgresSchedules(Role, ScheduleVerbs):
    """Schedules."""

    def __init__(self, access: Access, hints: Hints, enqueuer: Enqueuer) -> None:
        super().__init__(access, hints)
        self._enqueuer = enqueuer

    async def declare(self, schedules: dict[str, ScheduleSettings]) -> None:
        await declare_missing(self._access.for_many(len(schedules)), schedules)

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        return await fire_all(self._access, self._enqueuer, firings)


class PostgresDocuments(Role, DocumentVerbs):
    """Small JSON records."""


class PostgresLeases(Role):
    """Leases; liveness is lease expiry alone."""

    def __init__(self, access: Access, renewals: Access, hints: Hints) -> None:
        """`renewals` has a connection that only opens and renews leases."""
        super().__init__(access, hints)
        self._renewals = renewals
        self._rescuer = Rescuer()

    async def open(self, request: LeaseRequest) -> None:
        await self._renewals.write(lambda db: leases.forgive_silence(db, request.length))
        await self._renewals.once(lambda db: leases.open_lease(db, request))

    async def renew(self, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
        return await leases.renew(self._renewals, runners, length)

    async def end(self, ended: RunnerEnd) -> list[Rescued]:
        rescued = await end_runner(self._access, ended)
        self._hints.announce()
        return rescued

    async def rescue(self, limit: int) -> list[Rescued]:
        rescued = await self._rescuer.rescue(self._access, limit)
        if rescued:
            self._hints.announce()
        return rescued

    def hold_liveness_lock(self, holder: str) -> None:
        """No-op: liveness is lease expiry alone."""

    release_liveness_lock = hold_liveness_lock
    cancels = reading(leases.cancels)


class PostgresWorkers(Role):
    """The registry of workers."""

    async def beat(self, *infos: WorkerInfo) -> None:
        await self._access.once(lambda db: workers.beat(db, infos))
        access = Access(self._access.server, min(park.BEAT_SECONDS, self._access.seconds))
        types = known_types(infos)
        # The workers are registered even if this fails; the duty `park` unparks the rest.
        with contextlib.suppress(StoreUnavailable):
            if await access.read(lambda db: park.is_any_parked(db, types)):
                await access.write(lambda db: park.unpark(db, types))

    unregister = writing(workers.unregister)
    list = reading(workers.live_workers)


class PostgresLeader(Role):
    """Leadership of the coordinator."""

    async def campaign(self, bid: Campaign) -> int | None:
        if await self._access.read(lambda db: leadership.is_taken(db, bid)):
            return None
        await self._access.write(leases.forgive_silence)
        return await self._access.write(lambda db: leadership.campaign(db, bid))

    resign = writing(leadership.resign)
    current = reading(leadership.current_leader)


class PostgresSignals(Role):
    """Wake-up hints."""

    via_supervisor = True
    names_queues = True

    def __init__(self, access: Access, hints: Hints, claims: Claims) -> None:
        super().__init__(access, hints)
        self._rate_waits = claims.limited.rate_waits
        self.subscribe = hints.subscribe
        self.wake = hints.notify
        self.cursor = hints.cursor

    @property
    def outage(self) -> str | None:
        return self._hints.outage

    async def wait(self, cursor: int, seconds: float) -> bool:
        return await self._hints.wait_for_work(self._rate_waits, cursor, seconds)

    async def has_work(self, queues: Sequence[str], types: Sequence[str] | None) -> bool:
        return await self._access.read(lambda db: has_work(db, queues, types, self._rate_waits))

    def watch_completions(self, on_ended: OnEnded) -> PostgresCompletionWatcher:
        return PostgresCompletionWatcher(self._access.server, on_ended)


class PostgresStats(Role, StatsVerbs):
    """Meters and samples."""

    oldest = reading(oldest)

    async def record(self, meters: Sequence[Meter]) -> None:
        await self._access.write(lambda db: record(db, meters))
        if self._access.server.address.profile.has_buckets:
            # A failure here must not be reported: the meters are written, and a repeat would count them twice.
            with contextlib.suppress(StoreUnavailable):
                await self._access.server.conflicts.keep(self._access)
