"""Schedules: written, paused, looked at, fired. What becomes of them is decided in core/firing.py."""

from collections.abc import Sequence

from windlass.core.firing import Fired, Firing, applied, fired, made, paused, resumed, rewritten, standing
from windlass.core.moments import Micros, to_micros
from windlass.core.schedule import Schedule, ScheduleSettings
from windlass.errors import QueueClosed
from windlass.store.schedules import DueSchedules, schedule_values, to_schedule
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.enqueue import enqueue

_NOTHING = ScheduleSettings()


def named(db: Db, names: Sequence[str]) -> dict[str, Schedule]:
    """Those of these names that there are."""
    return {row[0]: to_schedule(row) for row in db.rows("named_schedules", {"names": array(names)})}


def all_schedules(db: Db) -> list[Schedule]:
    """Every one, by name."""
    return [to_schedule(row) for row in db.rows("schedules")]


def undeclared(db: Db, schedules: dict[str, ScheduleSettings]) -> bool:
    """A look without a lock: whether anything would change."""
    found = named(db, list(schedules))
    return any(name not in found or found[name].declared != said for name, said in schedules.items())


def declare(db: Db, schedules: dict[str, ScheduleSettings]) -> None:
    """What the code says; the operator's change beside it stays."""
    found = named(db, list(schedules))
    for name, said in schedules.items():
        before = found.get(name)
        if before is None:
            _write(db, made(name, db.now, declared=said, changed=_NOTHING))
        elif before.declared != said:
            _write(db, rewritten(before, db.now, said, before.changed))


def add(db: Db, name: str, changed: ScheduleSettings) -> Schedule | None:
    """A new one; None if the name is taken."""
    return None if named(db, [name]) else _write(db, made(name, db.now, declared=_NOTHING, changed=changed))


def change(db: Db, name: str, changed: ScheduleSettings, was: ScheduleSettings) -> Schedule | None:
    """Replace the operator's change, if it is what it was."""
    before = named(db, [name]).get(name)
    if before is None or before.changed != was:
        return before
    return _write(db, rewritten(before, db.now, before.declared, changed))


def pause(db: Db, name: str) -> Schedule | None:
    """It hands nothing in."""
    before = named(db, [name]).get(name)
    return None if before is None else _write(db, paused(before))


def resume(db: Db, name: str) -> Schedule | None:
    """It goes on."""
    before = named(db, [name]).get(name)
    return None if before is None else _write(db, resumed(before, db.now))


def next_tick(db: Db, name: str | None) -> Micros | None:
    """When a schedule comes next; None: never, it is paused, or there is none."""
    schedule = named(db, [name]).get(name) if name is not None else None
    if schedule is None or schedule.next_at is None or schedule.paused:
        return None
    return to_micros(schedule.next_at)


def due(db: Db, limit: int) -> DueSchedules:
    """By an index that holds only what may come."""
    now = db.now
    rows = db.rows("due_schedules", {"now": now, "limit": limit})
    first = None if rows else db.rows("next_tick")[0][0]
    return DueSchedules(now, tuple(map(to_schedule, rows)), None if first is None else first - now)


def fire(db: Db, firings: Sequence[Firing]) -> list[Fired]:
    """Jobs and schedules in one transaction: after a crash either both are there or neither."""
    found = named(db, [each.name for each in firings])
    able = standing(found, firings)
    done = dict(zip(able, _hand_in(db, list(able.values())), strict=True))
    after = [applied(found[name], each, done[name]) for name, each in able.items()]
    db.run_many("advance_schedule", [schedule_values(each) for each in after])
    return [done[each.name] if able.get(each.name) is each else Fired(done=False) for each in firings]


def _hand_in(db: Db, firings: Sequence[Firing]) -> list[Fired]:
    """All by one call; where a queue is closed, each by its own: then it shows whose."""
    try:
        stored = {each.id for each in enqueue(db, [job for each in firings for job in each.jobs])}
    except QueueClosed:
        if len(firings) == 1:
            return [fired(firings[0], ())]
        return [each for one in firings for each in _hand_in(db, [one])]
    return [fired(each, stored) for each in firings]


def remove(db: Db, name: str) -> bool:
    """It is gone; its jobs are not."""
    return bool(db.run("drop_schedule", {"name": name}))


def _write(db: Db, record: Schedule) -> Schedule:
    db.run("set_schedule", schedule_values(record))
    return record
