"""The roles of the Redis store: the verbs of its modules, bound to an access.

An error says that nothing was done only if no step of the call has done anything.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from windlass.core.flow.queue import QueueSettings
from windlass.core.ids import JobId
from windlass.core.jobs.job import Enqueued, Job, NewJob
from windlass.core.moments import Micros
from windlass.core.schedules.firing import Fired, Firing
from windlass.errors import InvalidOption, StoreUnavailable
from windlass.store.contract_upkeep import OnEnded
from windlass.store.records import Admitted, Renewal, Rescued, WorkerInfo, known_types
from windlass.store.redis.connection.access import Access
from windlass.store.redis.duties import park, prune, sweep
from windlass.store.redis.duties.queue_rotation import QueueRotation
from windlass.store.redis.liveness import leases, rescue, workers
from windlass.store.redis.operator import documents, ended, operator_verbs, queues, read_jobs, why_facts
from windlass.store.redis.schedules import fire, read_schedules, write_schedules
from windlass.store.redis.signals.completion_watcher import RedisCompletionWatcher
from windlass.store.redis.signals.hints import Hints
from windlass.store.redis.verbs import claim, note, samples, settle, stats
from windlass.store.redis.verbs.enqueue import EnqueueCoalescer

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Verb = Callable[Concatenate[Access, P], Awaitable[T]]

NO_TRANSACTION = "cannot be used here: Redis has no transaction that could hold a caller's own writes and jobs"


class Role:
    """Verbs with the access that they use."""

    def __init__(self, access: Access) -> None:
        self._access = access


class Method(Protocol[P, T_co]):
    """What `verb` returns: a function that is a method of its role, with the verb's own parameters."""

    def __get__(self, role: Any, owner: type | None = None) -> Callable[P, Coroutine[Any, Any, T_co]]: ...


def verb(work: Verb[P, T], *, steps: bool = False, background: bool = False) -> Method[P, T]:
    """A method that calls `work` with the role's access.

    `steps`: it makes several calls, and an error after the first change leaves the outcome unknown.
    `background`: in a cluster, an unreachable server is not waited for.
    """

    async def bound(role: Role, *args: P.args, **kwargs: P.kwargs) -> T:
        access = role._access.background() if background else role._access
        if steps:
            return await with_outcome(access, work, *args, **kwargs)
        return await work(access, *args, **kwargs)

    return cast(Method[P, T], bound)


async def with_outcome(access: Access, work: Verb[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a verb of several steps: an error after one of them changed anything says that it may be done."""
    own = Access(access.server, access.seconds, patient=access.patient)
    try:
        return await work(own, *args, **kwargs)
    except StoreUnavailable as error:
        error.maybe_done = error.maybe_done or own.changed
        raise


class RedisJobs(Role):
    """The lifecycle of a job."""

    grouped = False
    parked_types = verb(park.parked_types)

    def __init__(self, access: Access, rotation: QueueRotation) -> None:
        super().__init__(access.background())
        self._rotation = rotation
        self._coalescer = EnqueueCoalescer(access)

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        enqueued = await self._coalescer.enqueue(jobs)
        self._access.server.on_enqueue()
        return enqueued

    async def enqueue_inside(
        self, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        raise InvalidOption("connection", NO_TRANSACTION)

    async def get_inside(self, connection: object, ids: Sequence[JobId]) -> list[Job | None]:
        raise InvalidOption("connection", NO_TRANSACTION)

    async def admit(self, limit: int, queues: Sequence[str] | None = None) -> Admitted:
        return await sweep.admit(self._access, limit, queues, self._rotation)

    async def age(self, limit: int) -> int:
        return await with_outcome(self._access, sweep.age, limit, self._rotation)

    async def expire(self, limit: int) -> Sequence[JobId]:
        return await with_outcome(self._access, sweep.expire, limit, self._rotation)

    async def park(self) -> dict[str, int]:
        return await with_outcome(self._access, park.park, self._rotation)

    claim = verb(claim.claim)
    settle = verb(settle.settle, steps=True)
    note = verb(note.note, steps=True)
    held = verb(workers.held)


class RedisOperator(Role):
    """Reading and changing jobs."""

    get = verb(read_jobs.get)
    outcomes = verb(read_jobs.outcomes)
    cancel = verb(operator_verbs.cancel, steps=True)
    retry = verb(operator_verbs.retry, steps=True)
    run_now = verb(operator_verbs.run_now, steps=True)
    change = verb(operator_verbs.change, steps=True)
    delete = verb(operator_verbs.delete, steps=True)
    select = verb(read_jobs.select)
    count_completed = verb(read_jobs.count_completed)
    prune = verb(prune.prune, steps=True, background=True)
    failures = verb(read_jobs.failures)
    dead_ends = verb(ended.dead_ends)
    ended = verb(ended.ended)
    counts = verb(read_jobs.counts)
    list = verb(read_jobs.list_jobs)
    why_facts = verb(why_facts.why_facts)


class RedisQueues(Role):
    """Queues and their settings."""

    declare = verb(queues.declare, steps=True)
    change = verb(queues.change, steps=True)
    pause = verb(queues.pause, steps=True)
    resume = verb(queues.resume, steps=True)
    close = verb(queues.close, steps=True)
    open = verb(queues.open_, steps=True)
    list = verb(queues.all_queues)


class RedisSchedules(Role):
    """Schedules, and the jobs of their ticks."""

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        fired = await with_outcome(self._access.background(), fire.fire, firings)
        self._access.server.on_enqueue()
        return fired

    declare = verb(write_schedules.declare, steps=True)
    add = verb(write_schedules.add, steps=True)
    change = verb(write_schedules.change, steps=True)
    pause = verb(write_schedules.pause, steps=True)
    resume = verb(write_schedules.resume, steps=True)
    remove = verb(write_schedules.remove, steps=True)
    get = verb(read_schedules.get)
    due = verb(read_schedules.due, background=True)
    list = verb(read_schedules.all_schedules)


class RedisDocuments(Role):
    """Small JSON records."""

    add = verb(documents.add)
    replace = verb(documents.replace)
    get = verb(documents.get)
    list = verb(documents.newest)
    delete = verb(documents.delete, steps=True)
    trim = verb(documents.trim)


class RedisLeases(Role):
    """Leases. Liveness is lease expiry alone."""

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._rescuer = rescue.Rescuer()

    open = verb(leases.open_lease)
    cancels = verb(leases.cancels)
    end = verb(rescue.end_runner)

    async def renew(self, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
        return await leases.renew(self._access, runners, length)

    async def rescue(self, limit: int) -> list[Rescued]:
        return await self._rescuer.rescue(self._access, limit)

    def hold_liveness_lock(self, holder: str) -> None:
        """No-op."""

    def release_liveness_lock(self, holder: str) -> None:
        """No-op."""


class RedisWorkers(Role):
    """The registry of workers."""

    async def beat(self, *infos: WorkerInfo) -> None:
        await workers.beat(self._access, infos)
        await park.unpark(self._access, known_types(infos))

    unregister = verb(workers.unregister)
    list = verb(workers.live_workers)


class RedisLeader(Role):
    """The coordinator's leadership."""

    campaign = verb(workers.campaign)
    resign = verb(workers.resign)
    current = verb(workers.current)


class RedisSignals(Role):
    """Wake-up hints: every waiting process subscribes by itself."""

    via_supervisor = False
    names_queues = True

    def __init__(self, access: Access, hints: Hints) -> None:
        super().__init__(access)
        self._hints = hints

    @property
    def outage(self) -> str | None:
        return self._hints.outage

    def subscribe(self, queues: Sequence[str]) -> None:
        self._hints.subscribe(queues)

    def wake(self) -> None:
        self._hints.notify()

    def cursor(self) -> int:
        return self._hints.cursor()

    async def wait(self, cursor: int, seconds: float) -> bool:
        return await self._hints.wait_for_work(self._access.server.claim_memory.rate_waits, cursor, seconds)

    def watch_completions(self, on_ended: OnEnded) -> RedisCompletionWatcher:
        return RedisCompletionWatcher(self._access.server, on_ended)

    has_work = verb(claim.has_work)


class RedisStats(Role):
    """Meters and samples."""

    record = verb(stats.record)
    recent = verb(stats.recent)
    oldest = verb(stats.oldest)
    sample = verb(samples.make_samples)
    samples = verb(samples.samples_in)
