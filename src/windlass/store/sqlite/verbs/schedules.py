"""Schedules: declared, changed, paused and fired. core/schedules/firing.py decides what happens."""

from collections.abc import Sequence

from windlass.core.moments import Micros, to_micros
from windlass.core.schedules.firing import (
    Fired,
    Firing,
    after_firing,
    fired,
    new_schedule,
    paused,
    reconfigured,
    resumed,
    still_valid,
)
from windlass.core.schedules.schedule import Schedule, ScheduleSettings
from windlass.errors import QueueClosed
from windlass.store.schedules import DueSchedules, schedule_values, to_schedule
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.verbs.enqueue import enqueue

_NOTHING = ScheduleSettings()


def named(db: Db, names: Sequence[str]) -> dict[str, Schedule]:
    """The existing schedules among these."""
    return {row[0]: to_schedule(row) for row in db.rows("named_schedules", {"names": array(names)})}


def all_schedules(db: Db) -> list[Schedule]:
    """Every schedule, by name."""
    return [to_schedule(row) for row in db.rows("schedules")]


def undeclared(db: Db, schedules: dict[str, ScheduleSettings]) -> bool:
    """Whether `declare` would change anything; takes no lock."""
    found = named(db, list(schedules))
    return any(name not in found or found[name].declared != said for name, said in schedules.items())


def declare(db: Db, schedules: dict[str, ScheduleSettings]) -> None:
    """Write the declared settings; an operator's change stays."""
    found = named(db, list(schedules))
    for name, said in schedules.items():
        before = found.get(name)
        if before is None:
            _write(db, new_schedule(name, db.now, declared=said, changed=_NOTHING))
        elif before.declared != said:
            _write(db, reconfigured(before, db.now, said, before.changed))


def add(db: Db, name: str, changed: ScheduleSettings) -> Schedule | None:
    """Add a schedule; None if the name is taken."""
    return None if named(db, [name]) else _write(db, new_schedule(name, db.now, declared=_NOTHING, changed=changed))


def change(db: Db, name: str, changed: ScheduleSettings, was: ScheduleSettings) -> Schedule | None:
    """Replace the operator's change, if it is still `was`."""
    before = named(db, [name]).get(name)
    if before is None or before.changed != was:
        return before
    return _write(db, reconfigured(before, db.now, before.declared, changed))


def pause(db: Db, name: str) -> Schedule | None:
    """Enqueue nothing until it is resumed."""
    before = named(db, [name]).get(name)
    return None if before is None else _write(db, paused(before))


def resume(db: Db, name: str) -> Schedule | None:
    """Go on with the next tick."""
    before = named(db, [name]).get(name)
    return None if before is None else _write(db, resumed(before, db.now))


def next_tick(db: Db, name: str | None) -> Micros | None:
    """The next tick; None: there is none, or no such schedule, or it is paused."""
    schedule = named(db, [name]).get(name) if name is not None else None
    if schedule is None or schedule.next_at is None or schedule.paused:
        return None
    return to_micros(schedule.next_at)


def due(db: Db, limit: int) -> DueSchedules:
    """The schedules with a due tick, and how long until the next one."""
    now = db.now
    rows = db.rows("due_schedules", {"now": now, "limit": limit})
    first = None if rows else db.rows("next_tick")[0][0]
    return DueSchedules(now, tuple(map(to_schedule, rows)), None if first is None else first - now)


def fire(db: Db, firings: Sequence[Firing]) -> list[Fired]:
    """Enqueue the jobs and advance the schedules in one transaction."""
    found = named(db, [each.name for each in firings])
    current = still_valid(found, firings)
    done = dict(zip(current, _enqueue(db, list(current.values())), strict=True))
    after = [after_firing(found[name], each, done[name]) for name, each in current.items()]
    db.run_many("advance_schedule", [schedule_values(each) for each in after])
    return [done[each.name] if current.get(each.name) is each else Fired(done=False) for each in firings]


def _enqueue(db: Db, firings: Sequence[Firing]) -> list[Fired]:
    """All by one call; if a queue is closed, each by its own, to find which."""
    try:
        stored = {each.id for each in enqueue(db, [job for each in firings for job in each.jobs])}
    except QueueClosed:
        if len(firings) == 1:
            return [fired(firings[0], ())]
        return [each for one in firings for each in _enqueue(db, [one])]
    return [fired(each, stored) for each in firings]


def get(db: Db, names: Sequence[str]) -> list[Schedule | None]:
    """The schedules of these names."""
    found = named(db, names)
    return [found.get(name) for name in names]


def remove(db: Db, name: str) -> bool:
    """Remove the schedule; its jobs stay."""
    return bool(db.run("drop_schedule", {"name": name}))


def _write(db: Db, record: Schedule) -> Schedule:
    db.run("set_schedule", schedule_values(record))
    return record
