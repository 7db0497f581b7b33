"""Schedules: written, paused, looked at, fired. What becomes of them is decided in core/firing.py.

A schedule's row is locked before it is read for a change or a firing: whoever comes second sees what the first made
of it.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from windlass.core.firing import Fired, Firing, applied, fired, made, paused, resumed, rewritten, standing
from windlass.core.ids import JobId
from windlass.core.moments import Micros, to_micros
from windlass.core.schedule import Schedule, ScheduleSettings
from windlass.store.postgres.db import Db
from windlass.store.postgres.enqueue import Hint, enqueue
from windlass.store.schedules import DueSchedules, schedule_values, to_schedule

MOST_WRITTEN = 1000
"""By one statement: with the largest payloads that is some sixty megabytes."""
ADVANCED = ("name", "last_at", "next_at", "last_job", "missed", "skipped")
"""What a firing changes."""
_NOTHING = ScheduleSettings()


async def named(db: Db, names: Sequence[str]) -> dict[str, Schedule]:
    """Those of these names that there are."""
    return {row[0]: to_schedule(row) for row in await db.rows("named_schedules", {"names": names})}


async def _locked(db: Db, names: Sequence[str]) -> dict[str, Schedule]:
    """The same, and nobody else touches them until this transaction ends."""
    return {row[0]: to_schedule(row) for row in await db.rows("lock_schedules", {"names": names})}


async def all_schedules(db: Db) -> list[Schedule]:
    """Every one, by name."""
    return [to_schedule(row) for row in await db.rows("schedules")]


async def undeclared(db: Db, schedules: dict[str, ScheduleSettings]) -> bool:
    """A look without a lock: whether anything would change."""
    found = await named(db, list(schedules))
    return any(name not in found or found[name].declared != said for name, said in schedules.items())


async def declare(db: Db, schedules: dict[str, ScheduleSettings]) -> None:
    """What the code says; the operator's change beside it stays."""
    found, now = await _locked(db, list(schedules)), await db.now()
    others = {name: said for name, said in schedules.items() if name in found and found[name].declared != said}
    await _write(db, [rewritten(found[name], now, said, found[name].changed) for name, said in others.items()])
    new = {name: said for name, said in schedules.items() if name not in found}
    taken = await _make(db, [made(name, now, declared=said, changed=_NOTHING) for name, said in new.items()])
    if taken:  # somebody else was there between the look and the insert
        await declare(db, {name: new[name] for name in taken})


async def add(db: Db, name: str, changed: ScheduleSettings) -> Schedule | None:
    """A new one; None if the name is taken."""
    record = made(name, await db.now(), declared=_NOTHING, changed=changed)
    return None if await _make(db, [record]) else record


async def change(db: Db, name: str, changed: ScheduleSettings, was: ScheduleSettings) -> Schedule | None:
    """Replace the operator's change, if it is what it was."""

    def decided(before: Schedule, now: Micros) -> Schedule:
        return before if before.changed != was else rewritten(before, now, before.declared, changed)

    return await _rewrite(db, name, decided)


async def pause(db: Db, name: str) -> Schedule | None:
    """It hands nothing in."""
    return await _rewrite(db, name, lambda before, now: paused(before))


async def resume(db: Db, name: str) -> Schedule | None:
    """It goes on."""
    return await _rewrite(db, name, resumed)


async def remove(db: Db, name: str) -> bool:
    """It is gone; its jobs are not."""
    return bool(await db.run("drop_schedule", {"name": name}))


async def next_tick(db: Db, name: str | None) -> Micros | None:
    """When a schedule comes next; None: never, it is paused, or there is none."""
    schedule = (await named(db, [name])).get(name) if name is not None else None
    if schedule is None or schedule.next_at is None or schedule.paused:
        return None
    return to_micros(schedule.next_at)


async def due(db: Db, limit: int) -> DueSchedules:
    """By an index that holds only what may come."""
    rows = await db.rows("due_schedules", {"limit": limit})
    if rows:
        return DueSchedules(rows[0]["now"], tuple(to_schedule(tuple(row)[:-1]) for row in rows), None)
    ((now, first),) = await db.rows("next_tick")
    return DueSchedules(now, (), None if first is None else first - now)


async def fire(db: Db, firings: Sequence[Firing], hint: Hint) -> list[Fired]:
    """Jobs and schedules in one transaction: after a crash either both are there or neither.

    A queue that is closed between the look and the hand-in is a QueueClosed, and nothing may stand.
    """
    found = await _locked(db, [each.name for each in firings])
    able = standing(found, firings)
    stored = await _hand_in(db, list(able.values()), hint)
    done = {name: fired(each, stored) for name, each in able.items()}
    after = [applied(found[name], each, done[name]) for name, each in able.items()]
    if after:
        await db.run("advance_schedules", _values(after, ADVANCED))
    return [done[each.name] if able.get(each.name) is each else Fired(done=False) for each in firings]


async def _hand_in(db: Db, firings: Sequence[Firing], hint: Hint) -> set[JobId]:
    """The jobs that stand. What would come to a closed queue is left out: nobody else has to wait for that."""
    jobs = [job for each in firings for job in each.jobs]
    if not jobs:
        return set()
    closed = {name for (name,) in await db.rows("closed_queues", {"names": sorted({job.queue for job in jobs})})}
    return {each.id for each in await enqueue(db, [job for job in jobs if job.queue not in closed], hint)}


async def _rewrite(db: Db, name: str, decide: Callable[[Schedule, Micros], Schedule]) -> Schedule | None:
    """Lock the row, and write it anew if there is anything new."""
    before = (await _locked(db, [name])).get(name)
    if before is None:
        return None
    after = decide(before, await db.now())
    if after is not before:
        await _write(db, [after])
    return after


async def _write(db: Db, records: Sequence[Schedule]) -> None:
    for some in _parts(records):
        await db.run("set_schedules", _values(some))


async def _make(db: Db, records: Sequence[Schedule]) -> set[str]:
    """Those whose names are taken, and that are not made."""
    taken: set[str] = set()
    for some in _parts(sorted(records, key=lambda each: each.name)):
        new = {name for (name,) in await db.rows("add_schedules", {"rows": _values(some)["rows"]})}
        taken |= {each.name for each in some} - new
    return taken


def _parts(records: Sequence[Schedule]) -> Iterator[Sequence[Schedule]]:
    for start in range(0, len(records), MOST_WRITTEN):
        yield records[start : start + MOST_WRITTEN]


def _values(records: Sequence[Schedule], columns: Sequence[str] = Schedule.__struct_fields__) -> dict[str, object]:
    """Schedules as one value: the server takes it apart by the names of the columns."""
    rows = [schedule_values(each, columns) for each in records]
    return {"rows": msgspec.json.encode(rows).decode(), "names": [each.name for each in records]}
