"""Ticks that were planned come to their queues: all queues at once, a portion at a time in each.

A portion of a schedule's ticks is sent only after the portion before it was taken in.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.core.schedules.firing import Fired, fired
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.enqueue.batch import shared_of, to_batch
from windlass.store.redis.enqueue.known_elsewhere import known_elsewhere
from windlass.store.redis.enqueue.large_batch import portions
from windlass.store.redis.schedules.schedule_state import PlannedTicks

HAS_JOB = ord("+")
"""What a queue says of a tick that has one."""


class EnqueuedTicks(msgspec.Struct):
    """Schedules whose ticks are all done, and errors of the others."""

    fired: dict[str, Fired]
    trouble: StoreUnavailable | None = None
    overtaken: Sequence[PlannedTicks] = ()
    """Plans for whose schedules the queues know a later one."""


class TickPart(NamedTuple):
    """Ticks of one schedule that go along with a portion."""

    due: PlannedTicks
    begin: int
    """How many of its ticks come before these."""
    places: list[int]
    """Of their jobs in the portion."""


async def enqueue_ticks(access: Access, due: Sequence[PlannedTicks]) -> EnqueuedTicks:
    """Let the queues take in what is planned. Those that have seen it before say what became of it then."""
    by_queue: dict[str, list[PlannedTicks]] = defaultdict(list)
    for each in due:
        if each.firing.jobs:
            by_queue[each.firing.jobs[0].queue].append(each)
    elsewhere = await _elsewhere(access, due)
    marks: dict[str, bytes] = {each.firing.name: b"" for each in due}
    trouble = None
    overtaken: list[PlannedTicks] = []
    waiting = {queue: _portions(mine) for queue, mine in by_queue.items()}
    while waiting:
        sent = {queue: portion for queue, left in waiting.items() if (portion := next(left, None))}
        requests = {queue: _request(jobs, parts, elsewhere) for queue, (jobs, parts) in sent.items()}
        replies = await access.call_each("fire_ticks", requests)
        waiting = {queue: waiting[queue] for queue in sent}
        for queue, (_, parts) in sent.items():
            reply = replies[queue]
            if isinstance(reply, StoreUnavailable):
                trouble = reply
                del waiting[queue]
            elif reply is None:  # it took so long that the plan must be read again
                del waiting[queue]
            else:
                marks |= {part.due.firing.name: seen for part, seen in zip(parts, reply, strict=True)}
                overtaken += [part.due for part, seen in zip(parts, reply, strict=True) if not (seen or part.begin)]
    return EnqueuedTicks({each.firing.name: done for each in due if (done := _done(each, marks))}, trouble, overtaken)


async def _elsewhere(access: Access, due: Sequence[PlannedTicks]) -> set[JobId]:
    """Jobs that another queue has: of a removed schedule of the same name, if the clock was set back since."""
    doubtful = [job for each in due for job in each.firing.jobs if (job.tick or 0) <= each.furthest]
    return await known_elsewhere(access, doubtful)


def _portions(due: Sequence[PlannedTicks]) -> Iterator[tuple[Sequence[NewJob], list[TickPart]]]:
    """The jobs of one queue, as many at a time as one script takes, and their schedules."""
    jobs = [job for each in due for job in each.firing.jobs]
    owners = [(each, number) for each in due for number in range(len(each.firing.jobs))]
    at = 0
    for portion in portions(jobs, shared_of):
        parts: list[TickPart] = []
        for place, (each, number) in enumerate(owners[at : at + len(portion)]):
            if not parts or parts[-1].due is not each:
                parts.append(TickPart(each, number, []))
            parts[-1].places.append(place)
        yield portion, parts
        at += len(portion)


def _request(jobs: Sequence[NewJob], parts: Sequence[TickPart], elsewhere: set[JobId]) -> tuple[Any, ...]:
    """As fire.lua takes it, and the blobs."""
    batch = to_batch(jobs)
    where = {place: (k, i) for k, places in enumerate(batch.kinds, 1) for i, place in enumerate(places, 1)}
    entries = [
        (part.due.firing.name, part.due.number, part.begin, [n for place in part.places for n in where[place]])
        for part in parts
    ]
    known = [n for place, job in enumerate(jobs) if job.id in elsewhere for n in where[place]]
    asked = min(part.due.asked for part in parts)
    return ((*batch.request, asked, entries, known), *batch.blobs)


def _done(due: PlannedTicks, marks: dict[str, bytes]) -> Fired | None:
    """None: not all of its ticks are done, or a later plan is."""
    seen, jobs = marks[due.firing.name], due.firing.jobs
    if len(seen) != len(jobs):
        return None
    return fired(due.firing, {job.id for job, mark in zip(jobs, seen, strict=True) if mark == HAS_JOB})
