"""fire: a tick has one job, though the queue of that job and the office, where schedules are, share no script.

What is decided is written down in the office first, as a plan with a number (`plan_ticks`). Then the queues take the
jobs in (ticks.py): each remembers the last plan of a schedule that it saw, so that one which comes again or late
changes nothing. Then the schedule goes on, and its plan is gone (`advance`). Each step may be repeated by anybody.
Whoever finds a plan finishes it and decides nothing anew, for later other ticks would be due; and nobody changes a
schedule while its plan stands. So every plan that was ever made has come to its queue before anything else happens
to its schedule.
"""

from collections.abc import Sequence

from windlass.core.firing import Fired, Firing, applied
from windlass.errors import StoreUnavailable
from windlass.store.redis.access import Access
from windlass.store.redis.failpoints import naming
from windlass.store.redis.roster import see
from windlass.store.redis.standing import (
    Due,
    due_of,
    pack_decided,
    pack_plan,
    pack_standing,
    standing_schedule,
    tick_of,
)
from windlass.store.redis.ticks import hand_in

MOST_PLANNED = 200
"""In one call."""
_NOT_DONE = Fired(done=False)


async def fire(access: Access, firings: Sequence[Firing]) -> list[Fired]:
    """Hand in the jobs of ticks, and go on to the next ones.

    Where a plan was there before, that one is finished instead. Whose plan was taken is done, whoever finishes it.
    """
    first: dict[str, Firing] = {}
    for each in firings:
        first.setdefault(each.name, each)
    wanted = list(first.values())
    ours: list[Due] = []
    others: list[Due] = []
    for at in range(0, len(wanted), MOST_PLANNED):
        planned, found = await _plan(access, wanted[at : at + MOST_PLANNED])
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


async def finish(access: Access, due: Sequence[Due]) -> dict[str, Fired]:
    """Do what was planned, or is left of it: what became of the ticks, as far as their queues still know.

    Where a queue cannot be reached, its schedules stay, the others go on, and then it is told.
    """
    watched = access.server.watched
    with naming(watched, "hand_in"):
        handed_in = await hand_in(access, due)
    seen_to = [each for each in due if each.firing.name in handed_in.fired]
    with naming(watched, "advance"):
        for at in range(0, len(seen_to), MOST_PLANNED):
            await _advance(access, seen_to[at : at + MOST_PLANNED], handed_in.fired)
    if handed_in.overtaken:
        # Where others have gone on, the plan is theirs, and stays; after a failover it would be in the way for ever.
        await access.office("drop_plans", [(each.firing.name, each.number) for each in handed_in.overtaken])
    if handed_in.trouble is not None:
        raise handed_in.trouble
    return handed_in.fired


async def _plan(access: Access, firings: Sequence[Firing]) -> tuple[list[Due], list[Due]]:
    """Write down what was decided: the plans that hold now, ours and those that were there before."""
    blobs = [blob for each in firings for blob in (pack_decided(each), pack_plan(each))]
    reply = await access.office("plan_ticks", [(each.name,) for each in firings], *blobs)
    now, furthest, number, *rows = reply
    due, others = [], []
    for place, (firing, standing, before) in enumerate(zip(firings, rows[::2], rows[1::2], strict=True)):
        if standing is not None and before is None:
            due.append(Due(number + place, firing, standing_schedule(firing.name, standing), now, furthest))
        elif standing is not None:
            others.append(firing.name)
    _, found = await see(access, others)
    return due, [due_of(kept) for kept in found.values() if kept.plan is not None]


async def _advance(access: Access, due: Sequence[Due], fired: dict[str, Fired]) -> None:
    """Let schedules go on, unless somebody else has."""
    after = [applied(each.schedule, each.firing, fired[each.firing.name]) for each in due]
    request = [(each.firing.name, each.number, tick_of(new)) for each, new in zip(due, after, strict=True)]
    await access.office("advance", request, *map(pack_standing, after))
