"""Times and counts of calls to a store: one decorator round the contract. Where it is off, nothing is wrapped."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from windlass.core.events import Emit, Event, HintsUnavailable, LeaseExpired
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.log_events import FlowEnded
from windlass.core.schedules.firing import Fired, Firing
from windlass.core.status import Status
from windlass.observe.figures import Figures
from windlass.store.contract import Store
from windlass.store.records import Rescued, Settled
from windlass.store.wrapped import Call, WrappedStore

Count = Callable[..., None]


def measure_calls(store: Store, figures: Figures | None, jobs: Figures | None = None) -> Store:
    """The same store, with its calls measured if there are figures; what they did to jobs is counted in `jobs`."""
    if figures is None or is_measured(store):
        return store
    if isinstance(store, _HasConflicts):
        store.count_conflicts(lambda: figures.count_total("conflicts"))

    def wrap(role: str, verb: str, call: Call) -> Call:
        if role == "signals" and verb != "has_work":
            return call  # waiting for a hint is no call
        return _measured_call(verb_name(role, verb), call, figures, jobs or figures)

    return cast(Store, _Measured(store, wrap))


class _Measured(WrappedStore):
    """A store whose calls are measured."""


@runtime_checkable
class _HasConflicts(Protocol):
    """A store whose calls may conflict with others, and are repeated then."""

    def count_conflicts(self, count: Callable[[], None]) -> None: ...


def count_events(emit: Emit, figures: Figures | None) -> Emit:
    """The same listener, with the events that have a total counted."""
    if figures is None:
        return emit

    def counted(event: Event) -> None:
        if isinstance(event, FlowEnded):
            figures.count_total(f"flows_{event.status}")
        elif (total := _TOTAL_OF.get(type(event))) is not None:
            figures.count_total(total)
        emit(event)

    return counted


_TOTAL_OF: dict[type[Event], str] = {LeaseExpired: "leases_lost", HintsUnavailable: "hints_lost"}


def is_measured(store: Store) -> bool:
    """Whether its calls are measured already."""
    return isinstance(store, _Measured)


def is_behind_server(store: Store) -> bool:
    """Whether its calls go to a REST server, which counts the jobs itself."""
    return getattr(store, "is_behind_server", False)


def verb_name(role: str, verb: str) -> str:
    """The verb as in the label: `claim`, and `queues_list` for a verb that several roles have."""
    return f"{role}_{verb}" if verb in SHARED_VERBS else verb


SHARED_VERBS = frozenset(("add", "change", "close", "declare", "delete", "get", "list", "open", "pause", "resume"))


def _measured_call(verb: str, call: Call, figures: Figures, jobs: Figures) -> Call:
    offset, count = figures.verb(verb), _COUNTS.get(verb)

    async def measured(*arguments: Any, **named: Any) -> Any:
        begin, failed = time.perf_counter_ns(), False
        try:
            answer = await call(*arguments, **named)
        except Exception:
            failed = True
            raise
        finally:
            figures.called(offset, (time.perf_counter_ns() - begin) // 1000, failed=failed)
        if count is not None:
            count(jobs, arguments, answer)
        return answer

    return measured


def _count_enqueued(figures: Figures, arguments: tuple[Sequence[NewJob]], answers: Sequence[Enqueued]) -> None:
    jobs = arguments[0]
    if len(jobs) == 1:
        if not answers[0].existing:
            figures.count("enqueued", jobs[0].queue, jobs[0].type)
        return
    new = Counter((job.queue, job.type) for job, answer in zip(jobs, answers, strict=True) if not answer.existing)
    for (queue, type_), number in new.items():
        figures.count("enqueued", queue, type_, number)


def _count_enqueued_inside(figures: Figures, arguments: tuple[Any, ...], answers: Sequence[Enqueued]) -> None:
    _count_enqueued(figures, (arguments[1],), answers)


def _count_fired(figures: Figures, arguments: tuple[Sequence[Firing]], answers: Sequence[Fired]) -> None:
    for firing, fired in zip(arguments[0], answers, strict=True):
        enqueued = set(fired.jobs)
        for job in firing.jobs:
            if job.id in enqueued:
                figures.count("enqueued", job.queue, job.type)


def _count_settled(figures: Figures, arguments: tuple[Sequence[Settlement]], answers: Sequence[Settled]) -> None:
    """Which of them came too late, or were requeued; a settlement does not name the type."""
    for settlement, answer in zip(arguments[0], answers, strict=True):
        if answer is Settled.STALE:
            figures.count("stale", settlement.queue, "")
        elif settlement.requeues and answer is Settled.SETTLED:
            figures.count("requeued", settlement.queue, "")


def _count_rescued(figures: Figures, _: tuple[Any, ...], rescued: Sequence[Rescued]) -> None:
    for job in rescued:
        if job.outcome == "requeued":
            figures.count("requeued", job.queue, "")
            continue
        figures.count("rescued", job.queue, job.type)
        if job.status is Status.DEAD:
            figures.count("dead_crashed", job.queue, job.type)


_COUNTS: dict[str, Count] = {
    "enqueue": _count_enqueued,
    "enqueue_inside": _count_enqueued_inside,
    "fire": _count_fired,
    "settle": _count_settled,
    "end": _count_rescued,
    "rescue": _count_rescued,
}
