"""The alerts of deploy/prometheus/rules.yml, decided from the store: for `windlass top` and `doctor`, at this moment.

Prometheus waits for some minutes before it fires; this does not. Rescues and late outcomes are counted by processes
and not in the store: only Prometheus knows these.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from windlass.core.moments import SECOND, Micros, show_duration, to_micros
from windlass.core.schedules.schedule import Schedule
from windlass.core.stats.meter import Recent, middle
from windlass.store.doctor import Examination, Finding, Level, ok, warning
from windlass.store.records import WorkerInfo

CHECK = "alerts"
MAX_WAIT = 300.0
"""Seconds that the oldest pending job of a queue may wait."""
MAX_DEAD_SHARE = 0.05
MIN_DEAD = 5
"""Dead jobs of a type in five minutes below which their share says nothing."""
OVERDUE: Micros = 60 * SECOND
SLOW_START: Micros = 60 * SECOND
MAX_SLOW_SHARE = 14.4 * 0.01
"""Share of attempts that start later than SLOW_START, both in the last hour and in the last five minutes."""
HOUR, FIVE_MINUTES = 3600 * SECOND, 300 * SECOND
MAX_NAMED = 5


class Alert(msgspec.Struct, frozen=True):
    """An alert that would fire: its name in the rules, and why."""

    name: str
    says: str


class AlertFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts for all alerts, read at one time."""

    oldest: Mapping[str, float]
    """Seconds that the oldest pending job of each queue has waited; queues without one are absent."""
    paused: Collection[str]
    pending: int
    """Jobs that wait in queues that are not paused."""
    workers: Sequence[WorkerInfo]
    coordinator: str | None
    parked_types: Sequence[str]
    schedules: Sequence[Schedule]
    recent: Recent
    """Of the last hour."""


def find_alerts(facts: AlertFacts) -> list[Alert]:
    """All that would fire."""
    return [
        *_queues(facts),
        *_dead_jobs(facts.recent),
        *_slow_starts(facts.recent),
        *_fleet(facts),
        *_schedules(facts.schedules, facts.recent.now),
    ]


def types_without_worker(
    parked: Sequence[str], schedules: Sequence[Schedule], workers: Sequence[WorkerInfo]
) -> list[str]:
    """Types of jobs that were parked, and of active schedules, that no live worker knows."""
    known = {type_ for worker in workers for type_ in worker.types}
    scheduled = {each.rules.job.type for each in schedules if not each.paused and each.problem is None}
    return sorted({*parked, *scheduled} - known)


def queues_without_worker(
    waiting: Iterable[str], paused: Collection[str], workers: Sequence[WorkerInfo]
) -> list[str]:
    """Queues in which jobs wait, not paused, that no live worker serves."""
    served = {queue for worker in workers for queue in worker.queues}
    return sorted({*waiting} - {*paused} - served)


def _queues(facts: AlertFacts) -> Iterator[Alert]:
    for queue, seconds in sorted(facts.oldest.items()):
        if seconds > MAX_WAIT and queue not in facts.paused:
            waited = show_duration(round(seconds) * SECOND)
            yield Alert("WindlassQueueWaits", f"the oldest job of {queue} has waited {waited}")


def _dead_jobs(recent: Recent) -> Iterator[Alert]:
    for (queue, type_), part in sorted(recent.by(lambda meter: (meter.queue, meter.type)).items()):
        total = part.since(FIVE_MINUTES).total()
        share = total.dead / max(1, total.completed + total.dead)
        if total.dead >= MIN_DEAD and share > MAX_DEAD_SHARE:
            yield Alert("WindlassDeadJobs", f"{share:.0%} of {type_} in {queue} die")


def _slow_starts(recent: Recent) -> Iterator[Alert]:
    share = min(_slow_share(recent.since(length)) for length in (HOUR, FIVE_MINUTES))
    if share > MAX_SLOW_SHARE:
        yield Alert("WindlassWaitBudget", f"{share:.0%} of attempts start later than {show_duration(SLOW_START)}")


def _slow_share(recent: Recent) -> float:
    waits = recent.total().wait
    slow = sum(number for bin_number, number in waits.bins.items() if middle(bin_number) > SLOW_START)
    return slow / max(1, waits.count)


def _fleet(facts: AlertFacts) -> Iterator[Alert]:
    if facts.pending and not facts.workers:
        yield Alert("WindlassNoWorkers", "jobs wait, and no worker is alive")
    in_use = facts.workers or facts.pending or facts.schedules
    if facts.coordinator is None and in_use:
        yield Alert("WindlassNoCoordinator", "no worker is coordinator")
    unserved = queues_without_worker(facts.oldest, facts.paused, facts.workers) if facts.workers else []
    for queue in unserved[:MAX_NAMED]:
        yield Alert("WindlassQueueWithoutWorker", f"jobs wait in {queue}, and no live worker serves it")
    for type_ in types_without_worker(facts.parked_types, facts.schedules, facts.workers)[:MAX_NAMED]:
        yield Alert("WindlassTypeWithoutWorker", f"no live worker knows {type_}")


def _schedules(schedules: Sequence[Schedule], now: Micros) -> Iterator[Alert]:
    for each in schedules:
        late = 0 if each.next_at is None or each.paused else now - to_micros(each.next_at)
        if late > OVERDUE:
            yield Alert("WindlassScheduleOverdue", f"{each.name} is {show_duration(late // SECOND * SECOND)} overdue")


def examine_alerts(found: Examination) -> Finding:
    """One finding with all alerts that would fire."""
    alerts = _alerts_of(found)
    if not alerts:
        return ok(CHECK, "none would fire, as far as the store knows")
    says = "; ".join(f"{each.name} ({each.says})" for each in alerts)
    return warning(
        CHECK, f"would fire: {says}", "deploy/prometheus/rules.yml has them; the checks above say what to do"
    )


def _alerts_of(found: Examination) -> list[Alert]:
    census = found.census
    if census is None:
        broken = any(each.level is Level.PROBLEM for each in found.findings)
        return [Alert("WindlassStoreAway", "the jobs cannot be read")] if broken else []
    waiting = [each for each in census.waiting if each.due and each.queue not in census.paused]
    facts = AlertFacts(
        oldest={queue: micros / SECOND for queue, micros in census.oldest.items()},
        paused=census.paused,
        pending=sum(each.jobs for each in waiting),
        workers=census.workers,
        coordinator=census.coordinator,
        parked_types=[each.type for each in census.waiting if each.parked],
        schedules=census.schedules,
        recent=census.recent,
    )
    return find_alerts(facts)
