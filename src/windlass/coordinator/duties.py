"""The coordinator's duties. Each is idempotent or compare-and-set: doing one twice only costs time."""

import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from windlass.blobs.contract import BlobKey, BlobStore
from windlass.blobs.offload import Offload, off_loop
from windlass.client.groups.waking import wake_groups
from windlass.client.runtime.offloaded import drop_unused, is_needed_by_link
from windlass.client.verbs.actions import abandoned, run_page
from windlass.client.verbs.audit import trim_entries
from windlass.coordinator.cancels import Cancels
from windlass.coordinator.webhooks import Webhooks
from windlass.core import events
from windlass.core.events import Emit
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, Micros
from windlass.core.reference import Reference
from windlass.core.schedules.firing import Fired, Firing, firing
from windlass.core.schedules.schedule import Schedule
from windlass.core.status import FINISHED, Status
from windlass.store.contract import Store
from windlass.store.records import Rescued

MAX_ADMITTED = 1000
"""Max items per call, so that other calls run in between."""
MAX_BATCHES = 5
"""Max calls in one turn, so that other duties do not wait long."""
MAX_EXPIRED = 500
MAX_AGED = 500
MAX_RUNNERS = 100
MAX_PRUNED = 1000
MAX_EMITTED = 10
"""Up to this many rescued jobs are emitted one by one."""
MIN_PAUSE = 0.1
"""Pause between minutes that are made up: other duties come first."""
FIRST_EMITTED = 3
"""Of more rescued jobs, only this many are emitted one by one."""
OLD_SECONDS = 24 * 3600.0
MAX_PAGE = 500
PAUSE_SECONDS = 1.0
"""Pause between pages of one sweep: a million blobs take more than half an hour."""
WALK_EVERY = 3600.0
MAX_SCHEDULES = 500
MAX_JOBS = 1000
"""Jobs enqueued in one turn; the last schedule of the turn may exceed it by as many."""
MAX_NAMED = 10
BUDGET_SECONDS = 0.05
"""Time for decisions in one turn: the same event loop renews leases."""
MAX_PAUSE = 1.0
REPEAT_SECONDS = 60.0
"""A schedule that cannot be read is skipped for this long."""


class Duty(msgspec.Struct, frozen=True):
    """A recurring task of the coordinator; `run` returns the seconds until its next turn."""

    name: str
    run: Callable[[], Awaitable[float]]


def duties(store: Store, emit: Emit, blobs: Offload | None = None) -> list[Duty]:
    """All duties, in the order of a turn."""
    sweeping = [] if blobs is None else [Duty("sweep", Sweep(store, blobs.store, emit).run)]
    return [
        Duty("fire", Fire(store, emit).run),
        Duty("admit", lambda: admit(store)),
        Duty("expire", lambda: expire(store, emit)),
        Duty("age", lambda: age(store, emit)),
        Duty("rescue", lambda: rescue(store, emit)),
        Duty("park", lambda: park(store, emit)),
        Duty("tidy", lambda: tidy(store)),
        Duty("cancel", Cancels(store, emit).run),
        Duty("webhooks", Webhooks(store).run),
        Duty("prune", lambda: prune(store, emit, blobs)),
        Duty("sample", lambda: sample(store)),
        Duty("act", ContinueActions(store, blobs).run),
        Duty("trim", lambda: trim(store)),
        *sweeping,
    ]


async def admit(store: Store) -> float:
    """Make due jobs pending; the next turn is when the next job is due, if that is known."""
    for _ in range(MAX_BATCHES):
        admitted = await store.jobs.admit(MAX_ADMITTED)
        if admitted.jobs < MAX_ADMITTED:
            due = admitted.next_due_in
            return 0.5 if due is None else min(0.5, due / SECOND)
    return 0.0


async def trim(store: Store) -> float:
    """Drop the oldest entries of the audit if there are too many."""
    await trim_entries(store.documents)
    return 600.0


async def expire(store: Store, emit: Emit) -> float:
    """Cancel waiting jobs that have expired, a bounded number at a time."""
    expired = await store.jobs.expire(MAX_EXPIRED)
    if expired:
        emit(events.JobsExpired(jobs=len(expired)))
        await wake_groups(store.operator, expired, emit)
    return 0.0 if len(expired) == MAX_EXPIRED else 0.5


async def age(store: Store, emit: Emit) -> float:
    """Raise the priority of waiting jobs in queues with ageing, a bounded number at a time."""
    aged = await store.jobs.age(MAX_AGED)
    if aged:
        emit(events.JobsAged(jobs=aged))
    return 0.1 if aged == MAX_AGED else 1.0


async def rescue(store: Store, emit: Emit) -> float:
    """Put back the jobs of dead runners."""
    await report_rescued(store, await store.leases.rescue(MAX_RUNNERS), emit)
    return 0.5


async def report_rescued(store: Store, rescued: Sequence[Rescued], emit: Emit) -> None:
    """Emit which jobs were put back, and wake the groups of those that have ended instead."""
    emit_rescued(rescued, emit)
    await wake_groups(store.operator, [job.id for job in rescued if job.status in FINISHED], emit)


def emit_rescued(rescued: Sequence[Rescued], emit: Emit) -> None:
    """Emit which jobs were put back; of more than MAX_EMITTED only the first, and how many more."""
    single = rescued if len(rescued) <= MAX_EMITTED else rescued[:FIRST_EMITTED]
    for job in single:
        emit(
            events.JobRescued(
                job=job.id,
                type=job.type,
                queue=job.queue,
                attempt=job.attempt,
                status=job.status,
                outcome=job.outcome,
                worker=job.runner,
            )
        )
    if rest := rescued[len(single) :]:
        emit(events.JobsRescued(jobs=len(rest), statuses=tuple(sorted({str(job.status) for job in rest}))))


async def park(store: Store, emit: Emit) -> float:
    """Park jobs whose type no live worker knows."""
    parked = await store.jobs.park()
    if parked:
        emit(events.JobsParked(types=tuple(sorted(parked)), jobs=sum(parked.values())))
    return 1.0


async def tidy(store: Store) -> float:
    """Let the store do its own maintenance."""
    await store.tidy()
    return 1.0


async def sample(store: Store) -> float:
    """Make the samples of each minute shortly after its end; missed minutes are made up in portions."""
    return max(MIN_PAUSE, (await store.stats.sample()).next_in / SECOND)


async def prune(store: Store, emit: Emit, blobs: Offload | None = None) -> float:
    """Drop finished jobs whose retention is over, a bounded number at a time, and then their blobs."""
    dropped = await store.operator.prune(MAX_PRUNED)
    if dropped:
        emit(events.JobsPruned(jobs=len(dropped)))
        if blobs is not None:
            await drop_unused(store.operator, blobs.store, dropped)
    return 0.1 if len(dropped) == MAX_PRUNED else 60.0


class ContinueActions:
    """Continues actions on many jobs whose process is gone, a page of each at a turn, until they end."""

    def __init__(self, store: Store, blobs: Offload | None) -> None:
        self._store = store
        self._blobs = blobs
        self._continued: set[str] = set()
        """The actions that this process continues: each page renews an action's beat, so `abandoned` does not
        return it.
        """

    async def run(self) -> float:
        """Run one page of each action; returns the seconds until the next."""
        ids = self._continued | set(await abandoned(self._store))
        self._continued = {id_ for id_ in ids if await run_page(self._store, self._blobs, id_)}
        return 0.1 if self._continued else 5.0


class Sweep:
    """Removes blobs that no job refers to, a page of the blob store at each turn."""

    def __init__(self, store: Store, blobs: BlobStore, emit: Emit) -> None:
        self._store = store
        self._blobs = blobs
        self._emit = emit
        self._after: str | None = None

    async def run(self) -> float:
        """Sweep one page; returns the seconds until the next."""
        (page,) = await off_loop(lambda after: self._blobs.page(after, MAX_PAGE), [self._after])
        self._after = page.after
        old = [each.key for each in page.blobs if each.age > OLD_SECONDS]
        unreferenced = await self._unreferenced(old) if old else []
        if unreferenced:
            await off_loop(self._blobs.remove, [unreferenced])
            self._emit(events.BlobsSwept(blobs=len(unreferenced)))
        return WALK_EVERY if page.after is None else PAUSE_SECONDS

    async def _unreferenced(self, keys: Sequence[BlobKey]) -> list[BlobKey]:
        ids = sorted({key.job for key in keys})
        jobs = dict(zip(ids, await self._store.operator.get(ids), strict=True))
        unneeded = [key for key in keys if not _needs(jobs[key.job], key.name)]
        taken = {job for job in {key.job for key in unneeded} if await is_needed_by_link(self._store.operator, job)}
        return [key for key in unneeded if key.job not in taken]


def _needs(job: Job | None, name: str) -> bool:
    """Whether a job may still need this blob; the result of a running job may not be settled yet."""
    if job is None:
        return False
    values = (job.payload, job.result)
    return job.status is Status.RUNNING or any(isinstance(v, Reference) and v.name == name for v in values)


class Fire:
    """Enqueues the jobs of due ticks; if two coordinators decide about a tick, one of them fires it.

    Each turn is bounded, however many schedules there are and however long no coordinator ran. Schedules that cannot
    be read are remembered, so that they do not block others.
    """

    def __init__(self, store: Store, emit: Emit) -> None:
        self._schedules = store.schedules
        self._emit = emit
        self._broken: dict[str, float] = {}
        """Until when each schedule is skipped, by the monotonic clock."""

    async def run(self) -> float:
        """Run one turn; returns the seconds until the next."""
        found = await self._schedules.due(MAX_SCHEDULES + len(self._broken))
        wanted = self._decide(found.schedules, found.now)
        if wanted:
            self._emit_fired(wanted, await self._schedules.fire(wanted), found.now)
            return 0.0
        return MAX_PAUSE if found.next_in is None else max(0.0, min(MAX_PAUSE, found.next_in / SECOND))

    def _decide(self, schedules: Sequence[Schedule], now: Micros) -> list[Firing]:
        begin, jobs, wanted = time.monotonic(), 0, []
        for schedule in schedules:
            if self._broken.get(schedule.name, 0.0) > begin:
                continue
            try:
                wanted.append(firing(schedule, now))
            except Exception as error:
                # Any error, such as a time zone that is unknown here: the other schedules go on.
                self._broken[schedule.name] = begin + REPEAT_SECONDS
                self._emit(events.ScheduleBroken(schedule=schedule.name, problem=f"{type(error).__name__}: {error}"))
                continue
            self._broken.pop(schedule.name, None)
            jobs += len(wanted[-1].jobs)
            if jobs >= MAX_JOBS or time.monotonic() - begin > BUDGET_SECONDS:
                break
        return wanted

    def _emit_fired(self, wanted: Sequence[Firing], fired: Sequence[Fired], now: Micros) -> None:
        done = [(each, answer) for each, answer in zip(wanted, fired, strict=True) if answer.done]
        enqueued = [each for each, answer in done if answer.jobs]
        if enqueued:
            oldest = min(job.tick for each in enqueued for job in each.jobs if job.tick is not None)
            jobs = sum(len(answer.jobs) for _, answer in done)
            self._emit(events.TicksFired(schedules=len(enqueued), jobs=jobs, late=(now - oldest) / SECOND))
        if missed := {each.name: each.missed for each, _ in done if each.missed}:
            self._emit(events.TicksMissed(schedules=_some(missed), ticks=sum(missed.values())))
        if skipped := {each.name: answer.skipped for each, answer in done if answer.skipped}:
            self._emit(events.TicksSkipped(schedules=_some(skipped), ticks=sum(skipped.values())))


def _some(names: dict[str, int]) -> tuple[str, ...]:
    return tuple(sorted(names)[:MAX_NAMED])
