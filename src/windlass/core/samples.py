"""Samples: what the meters said and how many jobs there were, minute by minute for days and hour by hour for months.

Minutes are made of slots, hours of minutes; making one again gives the same, so nobody need know who made it. What is
made only grows: where less is found than is there already, the parts were dropped in the meantime.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from windlass.core.meter import KEPT, SLOT, Meter, Recent
from windlass.core.moments import DAY, SECOND, Micros
from windlass.core.status import FINISHED

MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
KEPT_FOR: dict[Micros, Micros] = {MINUTE: 7 * DAY, HOUR: 400 * DAY}
"""How long minutes and hours are kept."""
LAG: Micros = SLOT
"""A minute is made so long after it is over: what was just being written down is there by then."""
MOST_MINUTES = 20
"""Made at a time, when nobody has made any for a while."""
MOST_PRUNED = 60
"""Minutes or hours that are dropped at a time, when nobody has dropped any for a while."""
MOST_PAIRS = 200
MOST_QUEUES = 100
"""Of each step the busiest pairs of queue and type, and the busiest queues, are kept by name. What else a queue did
stands under the type '', what other queues did under the queue '' too: the sum over a step is always the whole."""

Place = tuple[str, str]


class Depth(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs a queue had, or with the queue '' all of them together: once, or as often as somebody looked."""

    queue: str
    slot: Micros
    looks: int = 1
    jobs: dict[str, int]
    """By status, added up over all looks; those that there were none of are left out."""
    most: dict[str, int]
    """By status, the largest of all looks."""
    oldest: Micros | None = None
    """How long the pending job that waited longest had waited, at the worst look; None if none waited."""


class Sampled(msgspec.Struct, frozen=True):
    """What was made, and when to come again."""

    minutes: int
    hours: int
    next_in: Micros
    """Until the next minute can be made; 0 if there is more to make up."""


def begin_of(moment: Micros, step: Micros) -> Micros:
    """When the minute or hour of a moment began."""
    return moment - moment % step


def closed(now: Micros, step: Micros) -> Micros:
    """The newest minute or hour that can be made."""
    return begin_of(now - LAG, step) - step


def minutes_due(now: Micros, last: Micros) -> list[Micros]:
    """The minutes to make, oldest first: what was missed, as far as slots are kept; the newest one in any case.

    That may have been made before, and have grown since, if the clock was set back.
    """
    newest = closed(now, MINUTE)
    kept = begin_of(now - KEPT, MINUTE) + MINUTE
    first = min(max(kept, last + MINUTE), newest)
    return list(range(first, newest + 1, MINUTE))


def hours_due(now: Micros, made: Sequence[Micros], missed: Micros | None) -> list[Micros]:
    """The hours to make: those whose last minute was just made, and the first of which there are minutes only."""
    newest = closed(now, HOUR)
    ended = {begin_of(minute, HOUR) for minute in made if begin_of(minute + MINUTE, HOUR) == minute + MINUTE}
    first = set() if missed is None else {begin_of(missed, HOUR)}
    return sorted(hour for hour in ended | first if hour <= newest)


def pruned_until(now: Micros, step: Micros, first: Micros | None) -> Micros:
    """Before when minutes or hours are dropped, the first of which there is being this: not too many at once."""
    before = begin_of(now - KEPT_FOR[step], step)
    return before if first is None else min(before, first + MOST_PRUNED * step)


class Roll:
    """A minute or an hour, added up from its parts as they are read: very many types are only a part in memory."""

    def __init__(self, slot: Micros) -> None:
        self._slot = slot
        self._added: dict[Place, Meter] = {}

    def add(self, parts: Iterable[Meter]) -> None:
        """Some of its parts."""
        for each in parts:
            place = each.queue, each.type
            self._added[place] = self._added[place].add(each) if place in self._added else each

    def grown(self, there: Iterable[Meter]) -> list[Meter]:
        """What says more than what is there. There is always one for ('', ''): by that one sees that it was made."""
        known = {(each.queue, each.type): each.ended for each in there}
        folded = _folded(self._slot, self._added, known.keys())
        return [each for each in folded if each.ended > known.get((each.queue, each.type), -1)]


def depths(slot: Micros, counts: dict[str, dict[str, int]], oldest: dict[str, Micros]) -> list[Depth]:
    """One look: the whole, and the queues in which most jobs are alive."""
    whole: dict[str, int] = {}
    for jobs in counts.values():
        for status, number in jobs.items():
            whole[status] = whole.get(status, 0) + number
    alive = sorted(counts, key=lambda queue: (-_alive(counts[queue]), queue))[:MOST_QUEUES]
    return [
        _look("", slot, whole, max(oldest.values(), default=None)),
        *(_look(queue, slot, counts[queue], oldest.get(queue)) for queue in sorted(alive)),
    ]


def merged(hour: Micros, looks: Iterable[Depth]) -> list[Depth]:
    """The looks of an hour as one for each queue. Nothing of nothing: then nobody looked."""
    found: dict[str, Depth] = {}
    for each in looks:
        found[each.queue] = _both(found[each.queue], each) if each.queue in found else each
    alive = sorted((queue for queue in found if queue), key=lambda queue: (-_alive(found[queue].jobs), queue))
    kept = sorted(alive[:MOST_QUEUES])
    return [msgspec.structs.replace(found[queue], slot=hour) for queue in (*([""] if "" in found else []), *kept)]


def total(queue: str, type_: str, slot: Micros, meters: Iterable[Meter]) -> Meter:
    """All of them as one."""
    return msgspec.structs.replace(Recent(slot, tuple(meters)).total(), queue=queue, type=type_, slot=slot)


def _folded(slot: Micros, added: dict[Place, Meter], known: Collection[Place]) -> list[Meter]:
    """By name what has one already, and then the busiest; the rest as the rest of its queue, or of all."""
    queues: dict[str, int] = {}
    for (queue, _), meter in added.items():
        if queue:
            queues[queue] = queues.get(queue, 0) + meter.ended
    had = {queue for queue, _ in known}
    kept = set(sorted(queues, key=lambda queue: (queue not in had, -queues[queue], queue))[:MOST_QUEUES])
    places = (place for place in added if place[1] and place[0] in kept)
    named = set(sorted(places, key=lambda place: (place not in known, -added[place].ended, place))[:MOST_PAIRS])
    folded: dict[Place, list[Meter]] = {("", ""): []}
    for (queue, type_), meter in added.items():
        place = (queue, type_) if (queue, type_) in named else (queue if queue in kept else "", "")
        folded.setdefault(place, []).append(meter)
    return [total(*place, slot, folded[place]) for place in sorted(folded)]


def _look(queue: str, slot: Micros, counted: dict[str, int], oldest: Micros | None) -> Depth:
    jobs = {status: number for status, number in counted.items() if number}
    return Depth(queue=queue, slot=slot, jobs=jobs, most=jobs, oldest=oldest)


def _both(one: Depth, other: Depth) -> Depth:
    statuses = sorted(one.jobs.keys() | other.jobs.keys())
    waited = [each.oldest for each in (one, other) if each.oldest is not None]
    return msgspec.structs.replace(
        one,
        looks=one.looks + other.looks,
        jobs={status: one.jobs.get(status, 0) + other.jobs.get(status, 0) for status in statuses},
        most={status: max(one.most.get(status, 0), other.most.get(status, 0)) for status in statuses},
        oldest=max(waited, default=None),
    )


def _alive(jobs: dict[str, int]) -> int:
    return sum(number for status, number in jobs.items() if status not in FINISHED)
