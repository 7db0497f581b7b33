"""The alerts of deploy/prometheus/rules.yml, decided from the store: for `windlass top` and `doctor`, at this moment.

Prometheus waits for some minutes before it fires; this does not.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from windlass.core.moments import SECOND, Micros, show_duration, to_micros
from windlass.core.schedules.schedule import Schedule
from windlass.core.stats.meter import Recent
from windlass.store.doctor import Census, Finding, ok, warning
from windlass.store.records import WorkerInfo

MAX_WAIT = 300.0
"""Seconds that the oldest pending job of a queue may wait."""
MAX_DEAD_SHARE = 0.05
MIN_DEAD = 5
"""Dead jobs of a type in five minutes below which their share says nothing."""
OVERDUE: Micros = 60 * SECOND


class Alert(msgspec.Struct, frozen=True):
    """An alert that would fire: its name in the rules, and why."""

    name: str
    says: str


def queue_alerts(oldest: Mapping[str, float], paused: Collection[str]) -> Iterator[Alert]:
    """Queues whose oldest job waits too long, unless they are paused."""
    for queue, seconds in sorted(oldest.items()):
        if seconds > MAX_WAIT and queue not in paused:
            waited = show_duration(round(seconds) * SECOND)
            yield Alert("WindlassQueueWaits", f"the oldest job of {queue} has waited {waited}")


def dead_alerts(recent: Recent) -> Iterator[Alert]:
    """Types of which many jobs died in the last five minutes."""
    for (queue, type_), part in sorted(recent.by(lambda meter: (meter.queue, meter.type)).items()):
        total = part.since(300 * SECOND).total()
        share = total.dead / max(1, total.completed + total.dead)
        if total.dead >= MIN_DEAD and share > MAX_DEAD_SHARE:
            yield Alert("WindlassDeadJobs", f"{share:.0%} of {type_} in {queue} die")


def schedule_alerts(schedules: Sequence[Schedule], now: Micros) -> Iterator[Alert]:
    """Schedules that should have fired."""
    for each in schedules:
        late = 0 if each.next_at is None or each.paused else now - to_micros(each.next_at)
        if late > OVERDUE:
            yield Alert("WindlassScheduleOverdue", f"{each.name} is {show_duration(late // SECOND * SECOND)} overdue")


def worker_alerts(workers: Sequence[WorkerInfo], pending: int) -> Iterator[Alert]:
    """Jobs wait, and no worker is there."""
    if pending and not workers:
        yield Alert("WindlassNoWorkers", "jobs wait, and no worker is alive")


def census_alerts(census: Census) -> Iterator[Finding]:
    """One finding with all that would fire, as far as the census knows: it has no times of waiting."""
    due = sum(each.jobs for each in census.waiting if each.due)
    found = [*worker_alerts(census.workers, due), *schedule_alerts(census.schedules, census.now)]
    if census.coordinator is None and (census.workers or census.waiting or census.schedules):
        found.append(Alert("WindlassNoCoordinator", "no worker is coordinator"))
    known = {type_ for worker in census.workers for type_ in worker.types}
    unknown = sorted({each.type for each in census.waiting if each.parked} - known)
    found += [Alert("WindlassTypeWithoutWorker", f"no live worker knows {type_}") for type_ in unknown[:5]]
    if not found:
        yield ok("alerts", "none would fire for workers, coordinator, types and schedules")
        return
    says = "; ".join(f"{each.name} ({each.says})" for each in found)
    advice = "deploy/prometheus/rules.yml has them; the checks above say what to do"
    yield warning("alerts", f"would fire: {says}", advice)
