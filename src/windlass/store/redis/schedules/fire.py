"""fire: a tick gets one job, although no script can change both the schedule and the queue of the job.

The decision is first written as a numbered plan in the global keys (`plan_ticks`). Then the queues store the jobs
(ticks.py): each remembers the last plan of a schedule, so that a repeated or late one changes nothing. Then the
schedule advances, and its plan is removed (`advance_schedules`). Each step is safe to repeat by any process. A
process that finds a plan finishes it and decides nothing anew, because other ticks would be due by then; and no
schedule changes while it has a plan. So every plan reaches its queue before anything else happens to its schedule.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.core.schedules.firing import Fired, Firing, after_firing, fired
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.failpoints import as_verb
from windlass.store.redis.connection.portion import by_queue
from windlass.store.redis.operator.read_records import known_ids
from windlass.store.redis.schedules.read_schedules import (
    PlannedTicks,
    due_of,
    pack_decided,
    pack_plan,
    pack_state,
    read_by_name,
    schedule_from,
    tick_of,
)
from windlass.store.redis.verbs.batch import shared_of, to_batch
from windlass.store.redis.verbs.large_batch import portions

HAS_JOB = ord("+")
"""The reply of a queue for a tick that has a job."""


class EnqueuedTicks(msgspec.Struct):
    """Schedules whose ticks are all done, and errors of the others."""

    fired: dict[str, Fired]
    trouble: StoreUnavailable | None = None
    overtaken: Sequence[PlannedTicks] = ()
    """Plans that are outdated: the queues have a later one of the schedule."""


class TickPart(NamedTuple):
    """The ticks of one schedule in a portion."""

    due: PlannedTicks
    begin: int
    """How many of its ticks come before these."""
    indexes: list[int]
    """The positions of their jobs in the portion."""


async def enqueue_ticks(access: Access, due: Sequence[PlannedTicks]) -> EnqueuedTicks:
    """Enqueue the jobs of planned ticks. A queue that has handled a plan before replies with its result."""
    with_jobs = by_queue([each for each in due if each.firing.jobs], lambda each: each.firing.jobs[0].queue)
    elsewhere = await _elsewhere(access, due)
    marks: dict[str, bytes] = {each.firing.name: b"" for each in due}
    trouble = None
    overtaken: list[PlannedTicks] = []
    waiting = {queue: _portions(mine) for queue, mine in with_jobs.items()}
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
            elif reply is None:  # the plan is too old, and must be read again
                del waiting[queue]
            else:
                marks |= {part.due.firing.name: seen for part, seen in zip(parts, reply, strict=True)}
                overtaken += [part.due for part, seen in zip(parts, reply, strict=True) if not (seen or part.begin)]
    return EnqueuedTicks({each.firing.name: done for each in due if (done := _done(each, marks))}, trouble, overtaken)


async def _elsewhere(access: Access, due: Sequence[PlannedTicks]) -> set[JobId]:
    """Jobs in another queue, of a removed schedule of the same name, if the clock was set back since."""
    doubtful = [job for each in due for job in each.firing.jobs if (job.tick or 0) <= each.furthest]
    return await known_ids(access, [job for job in doubtful if not job.fresh], elsewhere=True)


def _portions(due: Sequence[PlannedTicks]) -> Iterator[tuple[Sequence[NewJob], list[TickPart]]]:
    """The jobs of one queue, as many at a time as one script takes, and their schedules."""
    jobs = [job for each in due for job in each.firing.jobs]
    owners = [(each, number) for each in due for number in range(len(each.firing.jobs))]
    at = 0
    for portion in portions(jobs, shared_of):
        parts: list[TickPart] = []
        for index, (each, number) in enumerate(owners[at : at + len(portion)]):
            if not parts or parts[-1].due is not each:
                parts.append(TickPart(each, number, []))
            parts[-1].indexes.append(index)
        yield portion, parts
        at += len(portion)


def _request(jobs: Sequence[NewJob], parts: Sequence[TickPart], elsewhere: set[JobId]) -> tuple[Any, ...]:
    """The request of fire_ticks.lua, and its blobs."""
    batch = to_batch(jobs)
    where = {index: (k, i) for k, indexes in enumerate(batch.kinds, 1) for i, index in enumerate(indexes, 1)}
    entries = [
        (part.due.firing.name, part.due.number, part.begin, [n for index in part.indexes for n in where[index]])
        for part in parts
    ]
    known = [n for index, job in enumerate(jobs) if job.id in elsewhere for n in where[index]]
    asked = min(part.due.asked for part in parts)
    return ((*batch.request, asked, entries, known), *batch.blobs)


def _done(due: PlannedTicks, marks: dict[str, bytes]) -> Fired | None:
    """The result of a plan; None: not all of its ticks are done, or a later plan is."""
    seen, jobs = marks[due.firing.name], due.firing.jobs
    if len(seen) != len(jobs):
        return None
    return fired(due.firing, {job.id for job, mark in zip(jobs, seen, strict=True) if mark == HAS_JOB})


MAX_PLANNED = 200
"""Plans in one call."""
_NOT_DONE = Fired(done=False)


async def fire(access: Access, firings: Sequence[Firing]) -> list[Fired]:
    """Enqueue the jobs of ticks, and advance the schedules.

    An earlier plan is finished instead. A stored plan counts as done: any process can finish it.
    """
    first: dict[str, Firing] = {}
    for each in firings:
        first.setdefault(each.name, each)
    wanted = list(first.values())
    ours: list[PlannedTicks] = []
    others: list[PlannedTicks] = []
    for at in range(0, len(wanted), MAX_PLANNED):
        planned, found = await _plan(access, wanted[at : at + MAX_PLANNED])
        ours += planned
        others += found
    fired = await finish(access, [*ours, *others])
    done = {each.firing.name: fired.get(each.firing.name) for each in ours}
    unknown = sum(fired_as is None for fired_as in done.values())
    if unknown:
        raise StoreUnavailable(
            f"{access.server.shown}: other processes have fired {unknown} of these {len(done)} ticks, and their "
            "queues have dropped the outcome",
            maybe_done=True,
        )
    return [done.get(each.name) or _NOT_DONE if first[each.name] is each else _NOT_DONE for each in firings]


async def finish(access: Access, due: Sequence[PlannedTicks]) -> dict[str, Fired]:
    """Finish plans: what became of the ticks, as far as their queues still know.

    Schedules of an unreachable queue stay, the others advance; then the error is raised.
    """
    watched = access.server.failpoint_wire
    with as_verb(watched, "enqueue_jobs"):
        enqueued = await enqueue_ticks(access, due)
    seen_to = [each for each in due if each.firing.name in enqueued.fired]
    with as_verb(watched, "advance"):
        for at in range(0, len(seen_to), MAX_PLANNED):
            await _advance(access, seen_to[at : at + MAX_PLANNED], enqueued.fired)
    if enqueued.overtaken:
        # After a failover an outdated plan would block the schedule for ever; a newer one stays.
        request = [(each.firing.name, each.number) for each in enqueued.overtaken]
        await access.call_global("advance_schedules", request, *[b""] * len(request))
    if enqueued.trouble is not None:
        raise enqueued.trouble
    return enqueued.fired


async def _plan(access: Access, firings: Sequence[Firing]) -> tuple[list[PlannedTicks], list[PlannedTicks]]:
    """Store decisions as plans: the current plans, ours and those that were there before."""
    blobs = [blob for each in firings for blob in (pack_decided(each), pack_plan(each))]
    reply = await access.call_global("plan_ticks", [(each.name,) for each in firings], *blobs)
    now, furthest, number, *rows = reply
    due, others = [], []
    for index, (firing, state, before) in enumerate(zip(firings, rows[::2], rows[1::2], strict=True)):
        if state is not None and before is None:
            due.append(PlannedTicks(number + index, firing, schedule_from(firing.name, state), now, furthest))
        elif state is not None:
            others.append(firing.name)
    _, found = await read_by_name(access, others)
    return due, [due_of(kept) for kept in found.values() if kept.plan is not None]


async def _advance(access: Access, due: Sequence[PlannedTicks], fired: dict[str, Fired]) -> None:
    """Advance schedules whose plans are still current."""
    after = [after_firing(each.schedule, each.firing, fired[each.firing.name]) for each in due]
    request = [(each.firing.name, each.number, tick_of(new)) for each, new in zip(due, after, strict=True)]
    await access.call_global("advance_schedules", request, *map(pack_state, after))
