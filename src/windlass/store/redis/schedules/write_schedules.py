"""Schedules: written, paused, removed. Decisions are made in core/schedules/firing.py.

A schedule is read, decided, and written only if it has not changed since and has no plan under way: such a plan is
finished first. So what was planned before a change is done before it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from windlass.core.moments import DAY, Micros
from windlass.core.schedules.firing import changed_by, new_schedule, paused, reconfigured, resumed
from windlass.core.schedules.schedule import Schedule, ScheduleSettings
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.schedules.fire import finish
from windlass.store.redis.schedules.read_schedules import (
    ScheduleState,
    due_of,
    pack_settings,
    pack_state,
    read_by_name,
    tick_of,
)

MAX_TRIES = 50
MAX_WRITTEN = 200
MAX_TEXT = 500_000
MAX_FORGOTTEN = 100
REMEMBERED: Micros = DAY
"""How long queues remember a removed schedule: longer than a plan may take, see fire_ticks.lua."""
_NOTHING = ScheduleSettings()

Decide = Callable[[Schedule | None, Micros], Schedule | None]
"""The new schedule; the same one: nothing is written."""
Written = tuple[tuple[str, int, Micros | None], bytes, bytes]
"""Request, state and settings, as set_schedules.lua takes them."""


async def declare(access: Access, schedules: dict[str, ScheduleSettings]) -> None:
    """Store what the code declares; the operator's change stays."""

    def to_declare(name: str, declared: ScheduleSettings) -> Decide:
        def decide(before: Schedule | None, now: Micros) -> Schedule:
            if before is None:
                return new_schedule(name, now, declared=declared, changed=_NOTHING)
            return before if before.declared == declared else reconfigured(before, now, declared, before.changed)

        return decide

    await _write(access, {name: to_declare(name, declared) for name, declared in schedules.items()})


async def add(access: Access, name: str, changed: ScheduleSettings) -> Schedule | None:
    """Add a schedule; None if the name is taken."""
    new: list[Schedule] = []

    def decide(before: Schedule | None, now: Micros) -> Schedule:
        new[:] = [] if before else [new_schedule(name, now, declared=_NOTHING, changed=changed)]
        return before or new[0]

    await _write(access, {name: decide})
    return new[0] if new else None


async def change(
    access: Access,
    name: str,
    changed: ScheduleSettings,
    was: ScheduleSettings,
    version: str | None = None,
    pause: bool | None = None,
) -> Schedule | None:
    """Replace the operator's changes, if they are still `was`."""
    return await _rewrite(access, name, version, lambda before, now: changed_by(before, now, changed, was, pause))


async def pause(access: Access, name: str, version: str | None = None) -> Schedule | None:
    """Stop its ticks."""
    return await _rewrite(access, name, version, lambda before, now: paused(before))


async def resume(access: Access, name: str, version: str | None = None) -> Schedule | None:
    """Resume its ticks."""
    return await _rewrite(access, name, version, resumed)


async def _rewrite(
    access: Access, name: str, version: str | None, decide: Callable[[Schedule, Micros], Schedule]
) -> Schedule | None:
    def decided(before: Schedule | None, now: Micros) -> Schedule | None:
        if before is None:
            return None
        before.check(version)
        return decide(before, now)

    return (await _write(access, {name: decided}))[name]


async def remove(access: Access, name: str, version: str | None = None) -> bool:
    """Remove a schedule; its jobs stay."""
    for _ in range(MAX_TRIES):
        _, found = await read_by_name(access, [name])
        if not found:
            return False
        found[name].schedule.check(version)
        if not await _finish_plans(access, found) and await access.call_global(
            "drop_schedule", (name, found[name].stamp)
        ):
            return True
    raise _contended(access)


async def forget_removed(access: Access) -> None:
    """Let queues forget up to MAX_FORGOTTEN schedules that were removed long ago."""
    found = await access.call_global("removed_schedules", (REMEMBERED, MAX_FORGOTTEN))
    if not found:
        return
    numbers = [int(each) for each in found[1::2]]
    request = [(name.decode(), number) for name, number in zip(found[::2], numbers, strict=True)]
    await access.call_queues("forget_ticks", dict.fromkeys(await access.queue_names(), (request,)))
    # One that was removed again since has another number, and stays.
    await access.command("ZREMRANGEBYSCORE", "removed_schedules", numbers[0], numbers[-1])


async def _write(access: Access, decisions: Mapping[str, Decide]) -> dict[str, Schedule | None]:
    """Read, decide and write schedules; all are decided before any is written, unchanged ones are not written."""
    done: dict[str, Schedule | None] = {}
    for _ in range(MAX_TRIES):
        asked = [name for name in decisions if name not in done]
        now, found = await read_by_name(access, asked)
        if await _finish_plans(access, found):
            continue
        decided = {name: decisions[name](found[name].schedule if name in found else None, now) for name in asked}
        wanted: dict[str, Written] = {}
        for name, after in decided.items():
            kept = found.get(name)
            if after is not None and (kept is None or kept.schedule != after):
                request = name, 0 if kept is None else kept.stamp, tick_of(after)
                wanted[name] = request, pack_state(after), pack_settings(after)
        refused = await _set(access, wanted)
        done |= {name: after for name, after in decided.items() if name not in refused}
        if len(done) == len(decisions):
            return done
    raise _contended(access)


async def _set(access: Access, wanted: Mapping[str, Written]) -> set[str]:
    """Write schedules; returns the names of those that changed meanwhile, or have a plan."""
    refused: set[str] = set()
    for portion in _portions(list(wanted.values())):
        blobs = [blob for _, state, settings in portion for blob in (state, settings)]
        written = await access.call_global("set_schedules", [request for request, _, _ in portion], *blobs)
        refused |= {request[0] for (request, _, _), done in zip(portion, written, strict=True) if not done}
    return refused


def _portions(wanted: Sequence[Written]) -> Iterator[Sequence[Written]]:
    start, text = 0, 0
    for index, (_, _, settings) in enumerate(wanted):
        text += len(settings)
        if index > start and (index - start == MAX_WRITTEN or text > MAX_TEXT):
            yield wanted[start:index]
            start, text = index, len(settings)
    if wanted:
        yield wanted[start:]


async def _finish_plans(access: Access, found: Mapping[str, ScheduleState]) -> bool:
    """Finish plans of these schedules; whether there were any: then the schedules must be read again."""
    under_way = [due_of(kept) for kept in found.values() if kept.plan is not None]
    if under_way:
        await finish(access, under_way)
    return bool(under_way)


def _contended(access: Access) -> StoreUnavailable:
    return StoreUnavailable(f"{access.server.shown}: other processes keep changing the same schedules")
