"""Samples: meters and queue depths by the minute for days, and by the hour for months.

Minutes are made of intervals, hours of minutes. Making one again gives the same result, so any process may do it. A
sample only grows: if a second count is lower, parts of it have been dropped since.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from windlass.core.moments import DAY, SECOND, Micros
from windlass.core.stats.meter import INTERVAL, METER_RETENTION, Meter, Recent
from windlass.core.status import FINISHED

MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
SAMPLE_RETENTION: dict[Micros, Micros] = {MINUTE: 7 * DAY, HOUR: 400 * DAY}
"""How long minutes and hours are kept."""
LAG: Micros = INTERVAL
"""How long after its end a minute is made, so that late writes are included."""
MAX_MINUTES = 20
"""Made per call, when some were missed."""
MAX_PRUNED = 60
"""Minutes or hours dropped per call."""
MAX_PAIRS = 200
MAX_QUEUES = 100
"""In each step the busiest pairs of queue and type, and the busiest queues, are kept by name. The rest of a queue is
kept under the type '', the rest of all queues under the queue '': the sum over a step is always complete.
"""

QueueAndType = tuple[str, str]


class Depth(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs a queue had (the queue '': all jobs), at one observation or summed over several."""

    queue: str
    interval_start: Micros
    observations: int = 1
    jobs: dict[str, int]
    """By status, summed over all observations; zeros are left out."""
    max_jobs: dict[str, int]
    """By status, the maximum of all observations."""
    oldest: Micros | None = None
    """The longest wait of a pending job at any observation; None if none was pending."""


class Sampled(msgspec.Struct, frozen=True):
    """What was made, and when to sample again."""

    minutes: int
    hours: int
    next_in: Micros
    """Until the next minute can be made; 0 if more is missing."""


def start_of(moment: Micros, step: Micros) -> Micros:
    """The start of the minute or hour that contains a moment."""
    return moment - moment % step


def closed(now: Micros, step: Micros) -> Micros:
    """The newest minute or hour that can be made."""
    return start_of(now - LAG, step) - step


def minutes_due(now: Micros, last: Micros) -> list[Micros]:
    """The minutes to make, oldest first: missed ones as far as intervals are kept, and always the newest.

    The newest may exist already and have grown since, if the clock was set back.
    """
    newest = closed(now, MINUTE)
    kept = start_of(now - METER_RETENTION, MINUTE) + MINUTE
    first = min(max(kept, last + MINUTE), newest)
    return list(range(first, newest + 1, MINUTE))


def hours_due(now: Micros, made: Sequence[Micros], missed: Micros | None) -> list[Micros]:
    """The hours to make: those whose last minute was just made, and the first hour that has only minutes."""
    newest = closed(now, HOUR)
    ended = {start_of(minute, HOUR) for minute in made if start_of(minute + MINUTE, HOUR) == minute + MINUTE}
    first = set() if missed is None else {start_of(missed, HOUR)}
    return sorted(hour for hour in ended | first if hour <= newest)


def pruned_until(now: Micros, step: Micros, first: Micros | None) -> Micros:
    """The end of the minutes or hours to drop, `first` being the oldest: a bounded number at a time."""
    before = start_of(now - SAMPLE_RETENTION[step], step)
    return before if first is None else min(before, first + MAX_PRUNED * step)


class Rollup:
    """A minute or an hour, summed from its parts as they are read, so that they need not all be in memory."""

    def __init__(self, start: Micros) -> None:
        self._start = start
        self._added: dict[QueueAndType, Meter] = {}

    def add(self, parts: Iterable[Meter]) -> None:
        for each in parts:
            pair = each.queue, each.type
            self._added[pair] = self._added[pair].add(each) if pair in self._added else each

    def grown(self, stored: Iterable[Meter]) -> list[Meter]:
        """The meters with higher counts than the stored ones. One for ('', '') marks the step as made."""
        known = {(each.queue, each.type): each.ended for each in stored}
        folded = _folded(self._start, self._added, known.keys())
        return [each for each in folded if each.ended > known.get((each.queue, each.type), -1)]


def depths(start: Micros, counts: dict[str, dict[str, int]], oldest: dict[str, Micros]) -> list[Depth]:
    """One observation: all jobs, and the queues with the most live jobs."""
    whole: dict[str, int] = {}
    for jobs in counts.values():
        for status, number in jobs.items():
            whole[status] = whole.get(status, 0) + number
    alive = sorted(counts, key=lambda queue: (-_alive(counts[queue]), queue))[:MAX_QUEUES]
    return [
        _depth("", start, whole, max(oldest.values(), default=None)),
        *(_depth(queue, start, counts[queue], oldest.get(queue)) for queue in sorted(alive)),
    ]


def merged(hour: Micros, observed: Iterable[Depth]) -> list[Depth]:
    """The observations of an hour as one for each queue; none if there was no observation."""
    found: dict[str, Depth] = {}
    for each in observed:
        found[each.queue] = _both(found[each.queue], each) if each.queue in found else each
    alive = sorted((queue for queue in found if queue), key=lambda queue: (-_alive(found[queue].jobs), queue))
    kept = sorted(alive[:MAX_QUEUES])
    return [
        msgspec.structs.replace(found[queue], interval_start=hour)
        for queue in (*([""] if "" in found else []), *kept)
    ]


def total(queue: str, type_: str, start: Micros, meters: Iterable[Meter]) -> Meter:
    return msgspec.structs.replace(
        Recent(start, tuple(meters)).total(), queue=queue, type=type_, interval_start=start
    )


def _folded(start: Micros, added: dict[QueueAndType, Meter], known: Collection[QueueAndType]) -> list[Meter]:
    """Named samples keep their name, then the busiest get names; the rest is summed per queue, or for all."""
    queues: dict[str, int] = {}
    for (queue, _), meter in added.items():
        if queue:
            queues[queue] = queues.get(queue, 0) + meter.ended
    had = {queue for queue, _ in known}
    kept = set(sorted(queues, key=lambda queue: (queue not in had, -queues[queue], queue))[:MAX_QUEUES])
    candidates = (pair for pair in added if pair[1] and pair[0] in kept)
    named = set(sorted(candidates, key=lambda pair: (pair not in known, -added[pair].ended, pair))[:MAX_PAIRS])
    folded: dict[QueueAndType, list[Meter]] = {("", ""): []}
    for (queue, type_), meter in added.items():
        pair = (queue, type_) if (queue, type_) in named else (queue if queue in kept else "", "")
        folded.setdefault(pair, []).append(meter)
    return [total(*pair, start, folded[pair]) for pair in sorted(folded)]


def _depth(queue: str, start: Micros, counted: dict[str, int], oldest: Micros | None) -> Depth:
    jobs = {status: number for status, number in counted.items() if number}
    return Depth(queue=queue, interval_start=start, jobs=jobs, max_jobs=jobs, oldest=oldest)


def _both(one: Depth, other: Depth) -> Depth:
    statuses = sorted(one.jobs.keys() | other.jobs.keys())
    waited = [each.oldest for each in (one, other) if each.oldest is not None]
    return msgspec.structs.replace(
        one,
        observations=one.observations + other.observations,
        jobs={status: one.jobs.get(status, 0) + other.jobs.get(status, 0) for status in statuses},
        max_jobs={status: max(one.max_jobs.get(status, 0), other.max_jobs.get(status, 0)) for status in statuses},
        oldest=max(waited, default=None),
    )


def _alive(jobs: dict[str, int]) -> int:
    return sum(number for status, number in jobs.items() if status not in FINISHED)
