"""The coordinator's duties. Each is idempotent or compare-and-set by itself: doing one twice is only a waste."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from windlass.blobs.offload import Offload
from windlass.client.bequest import drop_unneeded
from windlass.coordinator.fire import Fire
from windlass.coordinator.sweep import Sweep
from windlass.core.events import Emit, JobRescued, JobsAged, JobsExpired, JobsParked, JobsPruned, JobsRescued
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.records import Rescued

MOST_ADMITTED = 1000
"""By one call: others come in between two."""
MOST_BATCHES = 5
"""In one turn: a job of another queue is not to wait long behind very many that were due a little earlier."""
MOST_EXPIRED = 500
MOST_AGED = 500
MOST_RUNNERS = 100
MOST_PRUNED = 1000
MOST_TOLD = 10
"""So many rescued jobs are told one by one."""
LEAST_PAUSE = 0.1
"""Between minutes that are made up: other duties come first."""
FIRST_TOLD = 3
"""Of more than that, so many."""


class Duty(msgspec.Struct, frozen=True):
    """Something to do again and again; its `run` says how many seconds it may wait."""

    name: str
    run: Callable[[], Awaitable[float]]


def duties(store: Store, emit: Emit, blobs: Offload | None = None) -> list[Duty]:
    """All of them."""
    sweeping = [] if blobs is None else [Duty("sweep", Sweep(store, blobs.store, emit).run)]
    return [
        Duty("fire", Fire(store, emit).run),
        Duty("admit", lambda: admit(store)),
        Duty("expire", lambda: expire(store, emit)),
        Duty("age", lambda: age(store, emit)),
        Duty("rescue", lambda: rescue(store, emit)),
        Duty("park", lambda: park(store, emit)),
        Duty("tidy", lambda: tidy(store)),
        Duty("prune", lambda: prune(store, emit, blobs)),
        Duty("sample", lambda: sample(store)),
        *sweeping,
    ]


async def admit(store: Store) -> float:
    """Jobs whose time has come become pending, exactly then if we know it in advance."""
    for _ in range(MOST_BATCHES):
        admitted = await store.jobs.admit(MOST_ADMITTED)
        if admitted.jobs < MOST_ADMITTED:
            due = admitted.next_due_in
            return 0.5 if due is None else min(0.5, due / SECOND)
    return 0.0


async def expire(store: Store, emit: Emit) -> float:
    """Waiting jobs whose time is over are cancelled, a bounded number at a time."""
    expired = await store.jobs.expire(MOST_EXPIRED)
    if expired:
        emit(JobsExpired(jobs=expired))
    return 0.0 if expired == MOST_EXPIRED else 0.5


async def age(store: Store, emit: Emit) -> float:
    """Waiting jobs of queues that say so move up in priority, a bounded number at a time."""
    aged = await store.jobs.age(MOST_AGED)
    if aged:
        emit(JobsAged(jobs=aged))
    return 0.1 if aged == MOST_AGED else 1.0


async def rescue(store: Store, emit: Emit) -> float:
    """Jobs of runners that are gone are put back."""
    tell_rescued(await store.leases.rescue(MOST_RUNNERS), emit)
    return 0.5


def tell_rescued(rescued: Sequence[Rescued], emit: Emit) -> None:
    """Say which jobs were put back because their runner is gone; of very many only the first, and how many more."""
    told = rescued if len(rescued) <= MOST_TOLD else rescued[:FIRST_TOLD]
    for job in told:
        emit(
            JobRescued(
                job=job.id,
                type=job.type,
                queue=job.queue,
                attempt=job.attempt,
                status=job.status,
                outcome=job.outcome,
                worker=job.runner,
            )
        )
    if rest := rescued[len(told) :]:
        emit(JobsRescued(jobs=len(rest), statuses=tuple(sorted({str(job.status) for job in rest}))))


async def park(store: Store, emit: Emit) -> float:
    """Jobs that nobody can run are set aside."""
    parked = await store.jobs.park()
    if parked:
        emit(JobsParked(types=tuple(sorted(parked)), jobs=sum(parked.values())))
    return 1.0


async def tidy(store: Store) -> float:
    """What keeps the store quick is done again and again."""
    await store.tidy()
    return 1.0


async def sample(store: Store) -> float:
    """How it went in each minute is kept, shortly after it is over; what was missed is made up bit by bit."""
    return max(LEAST_PAUSE, (await store.stats.sample()).next_in / SECOND)


async def prune(store: Store, emit: Emit, blobs: Offload | None = None) -> float:
    """What nobody keeps any longer is dropped, a bounded number at a time; its blobs go after it."""
    dropped = await store.operator.prune(MOST_PRUNED)
    if dropped:
        emit(JobsPruned(jobs=len(dropped)))
        if blobs is not None:
            await drop_unneeded(store.operator, blobs.store, dropped)
    return 0.1 if len(dropped) == MOST_PRUNED else 60.0
