"""Schedules: declare, change, pause, fire. What becomes of a schedule is decided in core/schedules/firing.py.

A schedule's row is locked before it is read for a change or a firing, so that concurrent ones are serialized.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.moments import Micros, to_micros
from windlass.core.schedules.firing import (
    Fired,
    Firing,
    after_firing,
    changed_by,
    fired,
    new_schedule,
    paused,
    reconfigured,
    resumed,
    still_valid,
)
from windlass.core.schedules.schedule import Schedule, ScheduleSettings
from windlass.store.schedules import DueSchedules, schedule_values, to_schedule
from windlass.store.sql.session import Session, Sessions, SharedRole, reading, writing

MAX_WRITTEN = 1000
"""Schedules written by one statement: with the largest payloads, about 60 MB."""
ADVANCED = ("name", "last_at", "next_at", "last_job", "missed", "skipped")
"""The columns that a firing changes."""
_NOTHING = ScheduleSettings()

Enqueue = Callable[[Any, Sequence[NewJob]], Awaitable[Sequence[Enqueued]]]


async def named(db: Session, names: Sequence[str], statement: str = "named_schedules") -> dict[str, Schedule]:
    """Existing schedules by name."""
    return {row[0]: to_schedule(row) for row in await db.rows(statement, {"names": list(names)})}


async def _locked(db: Session, names: Sequence[str]) -> dict[str, Schedule]:
    return await named(db, names, "lock_schedules")


async def get(db: Session, names: Sequence[str]) -> list[Schedule | None]:
    """The schedules of these names."""
    found = await named(db, names)
    return [found.get(name) for name in names]


async def all_schedules(db: Session) -> list[Schedule]:
    return [to_schedule(row) for row in await db.rows("all_schedules")]


async def is_undeclared(db: Session, schedules: dict[str, ScheduleSettings]) -> bool:
    """Whether `declare` would change anything; takes no lock."""
    found = await named(db, list(schedules))
    return any(name not in found or found[name].declared != declared for name, declared in schedules.items())


async def declare(db: Session, schedules: dict[str, ScheduleSettings]) -> None:
    """Write the declared settings; what an operator changed stays in force."""
    found, now = await _locked(db, list(schedules)), await db.now()
    await _write(
        db,
        [
            reconfigured(found[name], now, declared, found[name].changed)
            for name, declared in schedules.items()
            if name in found and found[name].declared != declared
        ],
    )
    new = {name: declared for name, declared in schedules.items() if name not in found}
    taken = await _add(
        db, [new_schedule(name, now, declared=declared, changed=_NOTHING) for name, declared in new.items()]
    )
    if taken:  # another process added these between the read and the insert
        await declare(db, {name: new[name] for name in taken})


async def declare_missing(sessions: Sessions, schedules: dict[str, ScheduleSettings]) -> None:
    """Declare the settings if that changes anything."""
    if not schedules:
        return
    if await sessions.read(lambda db: is_undeclared(db, schedules)):
        await sessions.write(lambda db: declare(db, schedules))


async def add(db: Session, name: str, changed: ScheduleSettings) -> Schedule | None:
    """Add a schedule; returns None if the name is taken."""
    record = new_schedule(name, await db.now(), declared=_NOTHING, changed=changed)
    return None if await _add(db, [record]) else record


async def change(
    db: Session,
    name: str,
    changed: ScheduleSettings,
    was: ScheduleSettings,
    version: str | None = None,
    pause: bool | None = None,
) -> Schedule | None:
    """Replace what the operator changed, if that is still `was`."""
    return await _rewrite(db, name, lambda before, now: changed_by(before, now, changed, was, pause), version)


async def pause(db: Session, name: str, version: str | None = None) -> Schedule | None:
    return await _rewrite(db, name, lambda before, now: paused(before), version)


async def resume(db: Session, name: str, version: str | None = None) -> Schedule | None:
    return await _rewrite(db, name, resumed, version)


async def remove(db: Session, name: str, version: str | None = None) -> bool:
    """Remove a schedule; its jobs stay. Returns whether it existed."""
    if version is not None and (before := (await _locked(db, [name])).get(name)):
        before.check(version)
    return bool(await db.run("drop_schedule", {"name": name}))


async def next_tick(db: Session, name: str | None) -> Micros | None:
    """The next tick of a schedule; None if there is none, or the schedule is paused or unknown."""
    schedule = (await named(db, [name])).get(name) if name is not None else None
    if schedule is None or schedule.next_at is None or schedule.paused:
        return None
    return to_micros(schedule.next_at)


async def due(db: Session, limit: int) -> DueSchedules:
    """The due schedules, or how long until the next one."""
    rows = await db.rows("due_schedules", {"limit": limit})
    if rows:
        return DueSchedules(rows[0][-1], tuple(to_schedule(tuple(row)[:-1]) for row in rows), None)
    ((now, first),) = await db.rows("next_tick")
    return DueSchedules(now, (), None if first is None else first - now)


async def fire(db: Session, firings: Sequence[Firing], enqueue: Enqueue) -> list[Fired]:
    """Store the jobs of firings and the new states of their schedules, in one transaction.

    If a queue is closed meanwhile, raises QueueClosed, and nothing is stored.
    """
    found = await _locked(db, [each.name for each in firings])
    valid = still_valid(found, firings)
    stored = await _enqueue(db, [job for each in valid.values() for job in each.jobs], enqueue)
    done = {name: fired(each, stored) for name, each in valid.items()}
    after = [after_firing(found[name], each, done[name]) for name, each in valid.items()]
    if after:
        await db.run("advance_schedules", _values(after, ADVANCED))
    return [done[each.name] if valid.get(each.name) is each else Fired(done=False) for each in firings]


async def _enqueue(db: Session, jobs: Sequence[NewJob], enqueue: Enqueue) -> set[JobId]:
    """Enqueue the jobs, except those for closed queues, which must not delay the others; returns the stored ids."""
    if not jobs:
        return set()
    closed = {name for (name,) in await db.rows("closed_queues", {"names": sorted({job.queue for job in jobs})})}
    return {each.id for each in await enqueue(db, [job for job in jobs if job.queue not in closed])}


async def _rewrite(
    db: Session, name: str, decide: Callable[[Schedule, Micros], Schedule], version: str | None = None
) -> Schedule | None:
    """Lock a schedule, and write it if `decide` changes it."""
    before = (await _locked(db, [name])).get(name)
    if before is None:
        return None
    before.check(version)
    after = decide(before, await db.now())
    if after is not before:
        await _write(db, [after])
    return after


async def _write(db: Session, records: Sequence[Schedule]) -> None:
    for part in _parts(records):
        await db.run("set_schedules", _values(part))


async def _add(db: Session, records: Sequence[Schedule]) -> set[str]:
    """Insert schedules; returns the names that are taken."""
    taken: set[str] = set()
    for part in _parts(sorted(records, key=lambda each: each.name)):
        new = {name for (name,) in await db.rows("add_schedules", {"rows": _values(part)["rows"]})}
        taken |= {each.name for each in part} - new
    return taken


def _parts(records: Sequence[Schedule]) -> Iterator[Sequence[Schedule]]:
    for start in range(0, len(records), MAX_WRITTEN):
        yield records[start : start + MAX_WRITTEN]


def _values(records: Sequence[Schedule], columns: Sequence[str] = Schedule.__struct_fields__) -> dict[str, object]:
    """Schedules as one JSON value."""
    rows = [schedule_values(each, columns) for each in records]
    return {"rows": msgspec.json.encode(rows).decode(), "names": [each.name for each in records]}


class ScheduleVerbs(SharedRole):
    """Schedules; each store adds `fire`, because they wait for locks differently."""

    async def declare(self, schedules: dict[str, ScheduleSettings]) -> None:
        await declare_missing(self._sessions, schedules)

    add = writing(add)
    change = writing(change)
    pause = writing(pause)
    resume = writing(resume)
    remove = writing(remove)
    get = reading(get)
    due = reading(due)
    list = reading(all_schedules)
