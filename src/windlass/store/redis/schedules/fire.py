"""fire: a tick has one job, although schedules and the queue of the job share no script.

The decision is first written as a numbered plan in the global keys (`plan_ticks`). Then the queues store the jobs
(ticks.py): each remembers the last plan of a schedule, so that a repeated or late one changes nothing. Then the
schedule advances, and its plan is removed (`advance_schedules`). Each step is safe to repeat by any process. A
process that finds a plan finishes it and decides nothing anew, because other ticks would be due by then; and no
schedule changes while it has a plan. So every plan reaches its queue before anything else happens to its schedule.
"""

from collections.abc import Sequence

from windlass.core.schedules.firing import Fired, Firing, after_firing
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.failpoints import naming
from windlass.store.redis.schedules.read_schedules import read_by_name
from windlass.store.redis.schedules.schedule_state import (
    PlannedTicks,
    due_of,
    pack_decided,
    pack_plan,
    pack_state,
    schedule_from,
    tick_of,
)
from windlass.store.redis.schedules.ticks import enqueue_ticks

MAX_PLANNED = 200
"""In one call."""
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
    if None in done.values():
        raise StoreUnavailable(
            f"{access.server.shown}: ticks of schedules were planned so long ago that others have gone on with them",
            maybe_done=True,
        )
    return [done.get(each.name) or _NOT_DONE if first[each.name] is each else _NOT_DONE for each in firings]


async def finish(access: Access, due: Sequence[PlannedTicks]) -> dict[str, Fired]:
    """Do what was planned, or is left of it: what became of the ticks, as far as their queues still know.

    Where a queue cannot be reached, its schedules stay, the others go on, and then it is told.
    """
    watched = access.server.failpoint_wire
    with naming(watched, "hand_in"):
        enqueued = await enqueue_ticks(access, due)
    seen_to = [each for each in due if each.firing.name in enqueued.fired]
    with naming(watched, "advance"):
        for at in range(0, len(seen_to), MAX_PLANNED):
            await _advance(access, seen_to[at : at + MAX_PLANNED], enqueued.fired)
    if enqueued.overtaken:
        # A newer plan stays; after a failover this one would block the schedule for ever.
        await access.call_global("drop_plans", [(each.firing.name, each.number) for each in enqueued.overtaken])
    if enqueued.trouble is not None:
        raise enqueued.trouble
    return enqueued.fired


async def _plan(access: Access, firings: Sequence[Firing]) -> tuple[list[PlannedTicks], list[PlannedTicks]]:
    """Write down what was decided: the plans that hold now, ours and those that were there before."""
    blobs = [blob for each in firings for blob in (pack_decided(each), pack_plan(each))]
    reply = await access.call_global("plan_ticks", [(each.name,) for each in firings], *blobs)
    now, furthest, number, *rows = reply
    due, others = [], []
    for place, (firing, standing, before) in enumerate(zip(firings, rows[::2], rows[1::2], strict=True)):
        if standing is not None and before is None:
            due.append(PlannedTicks(number + place, firing, schedule_from(firing.name, standing), now, furthest))
        elif standing is not None:
            others.append(firing.name)
    _, found = await read_by_name(access, others)
    return due, [due_of(kept) for kept in found.values() if kept.plan is not None]


async def _advance(access: Access, due: Sequence[PlannedTicks], fired: dict[str, Fired]) -> None:
    """Advance schedules whose plans are still current."""
    after = [after_firing(each.schedule, each.firing, fired[each.firing.name]) for each in due]
    request = [(each.firing.name, each.number, tick_of(new)) for each, new in zip(due, after, strict=True)]
    await access.call_global("advance_schedules", request, *map(pack_state, after))
