"""Schedules: written, paused, removed. What becomes of them is decided in core/firing.py.

All of them are kept in the office. Who writes one has read it, and writes only if nobody else has since, and if no
plan of its ticks is under way: such a plan is finished first. So what was planned before a change is done before it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from windlass.core.firing import made, paused, resumed, rewritten
from windlass.core.moments import DAY, Micros
from windlass.core.schedule import Schedule, ScheduleSettings
from windlass.errors import StoreUnavailable
from windlass.store.redis.access import Access
from windlass.store.redis.fire import finish
from windlass.store.redis.roster import see
from windlass.store.redis.standing import Kept, due_of, pack_settings, pack_standing, tick_of

MOST_TRIES = 50
MOST_WRITTEN = 200
MOST_TEXT = 500_000
MOST_FORGOTTEN = 100
REMEMBERED: Micros = DAY
"""How long queues know of a schedule that was removed: for longer than anybody may carry a plan, see fire.lua."""
_NOTHING = ScheduleSettings()

Decide = Callable[[Schedule | None, Micros], Schedule | None]
"""What becomes of a schedule, or of none; as it is now: nothing is written."""
Written = tuple[tuple[str, int, Micros | None], bytes, bytes]
"""Request, standing and settings, as set_schedules.lua takes them."""


async def declare(access: Access, schedules: dict[str, ScheduleSettings]) -> None:
    """What the code says; the operator's change beside it stays."""

    def to_say(name: str, said: ScheduleSettings) -> Decide:
        def decide(before: Schedule | None, now: Micros) -> Schedule:
            if before is None:
                return made(name, now, declared=said, changed=_NOTHING)
            return before if before.declared == said else rewritten(before, now, said, before.changed)

        return decide

    await _write(access, {name: to_say(name, said) for name, said in schedules.items()})


async def add(access: Access, name: str, changed: ScheduleSettings) -> Schedule | None:
    """A new one; None if the name is taken."""
    new: list[Schedule] = []

    def decide(before: Schedule | None, now: Micros) -> Schedule:
        new[:] = [] if before else [made(name, now, declared=_NOTHING, changed=changed)]
        return before or new[0]

    await _write(access, {name: decide})
    return new[0] if new else None


async def change(access: Access, name: str, changed: ScheduleSettings, was: ScheduleSettings) -> Schedule | None:
    """Replace the operator's change, if it is what it was."""

    def decide(before: Schedule | None, now: Micros) -> Schedule | None:
        if before is None or before.changed != was:
            return before
        return rewritten(before, now, before.declared, changed)

    return (await _write(access, {name: decide}))[name]


async def pause(access: Access, name: str) -> Schedule | None:
    """It hands nothing in."""
    return (await _write(access, {name: lambda before, now: before and paused(before)}))[name]


async def resume(access: Access, name: str) -> Schedule | None:
    """It goes on."""
    return (await _write(access, {name: lambda before, now: before and resumed(before, now)}))[name]


async def remove(access: Access, name: str) -> bool:
    """It is gone; its jobs are not."""
    for _ in range(MOST_TRIES):
        _, found = await see(access, [name])
        if not found:
            return False
        if not await _finished(access, found) and await access.office("drop_schedule", (name, found[name].stamp)):
            return True
    raise _contended(access)


async def forget_removed(access: Access) -> None:
    """Let queues forget schedules that were removed long ago: some of them, if there are many."""
    found = await access.office("long_removed", (REMEMBERED, MOST_FORGOTTEN))
    if not found:
        return
    numbers = [int(each) for each in found[1::2]]
    request = [(name.decode(), number) for name, number in zip(found[::2], numbers, strict=True)]
    await access.calls("forget_ticks", dict.fromkeys(await access.queue_names(), (request,)))
    # One that was removed again since has another number, and stays.
    await access.command("ZREMRANGEBYSCORE", "removed", numbers[0], numbers[-1])


async def _write(access: Access, decisions: Mapping[str, Decide]) -> dict[str, Schedule | None]:
    """Each schedule as it is decided; nothing is written before all are decided, and not what stays as it is."""
    done: dict[str, Schedule | None] = {}
    for _ in range(MOST_TRIES):
        asked = [name for name in decisions if name not in done]
        now, found = await see(access, asked)
        if await _finished(access, found):
            continue
        decided = {name: decisions[name](found[name].schedule if name in found else None, now) for name in asked}
        wanted: dict[str, Written] = {}
        for name, after in decided.items():
            kept = found.get(name)
            if after is not None and (kept is None or kept.schedule != after):
                request = name, 0 if kept is None else kept.stamp, tick_of(after)
                wanted[name] = request, pack_standing(after), pack_settings(after)
        refused = await _set(access, wanted)
        done |= {name: after for name, after in decided.items() if name not in refused}
        if len(done) == len(decisions):
            return done
    raise _contended(access)


async def _set(access: Access, wanted: Mapping[str, Written]) -> set[str]:
    """Write them; the names of those that somebody else has written meanwhile, or is at."""
    refused: set[str] = set()
    for portion in _portions(list(wanted.values())):
        blobs = [blob for _, standing, settings in portion for blob in (standing, settings)]
        written = await access.office("set_schedules", [request for request, _, _ in portion], *blobs)
        refused |= {request[0] for (request, _, _), done in zip(portion, written, strict=True) if not done}
    return refused


def _portions(wanted: Sequence[Written]) -> Iterator[Sequence[Written]]:
    start, text = 0, 0
    for place, (_, _, settings) in enumerate(wanted):
        text += len(settings)
        if place > start and (place - start == MOST_WRITTEN or text > MOST_TEXT):
            yield wanted[start:place]
            start, text = place, len(settings)
    if wanted:
        yield wanted[start:]


async def _finished(access: Access, found: Mapping[str, Kept]) -> bool:
    """Whether there were plans under way, which are finished now: those schedules must be read again."""
    under_way = [due_of(kept) for kept in found.values() if kept.plan is not None]
    if under_way:
        await finish(access, under_way)
    return bool(under_way)


def _contended(access: Access) -> StoreUnavailable:
    return StoreUnavailable(f"{access.server.shown}: others write the same schedules all the time")
