"""Schedules: declared, changed, paused, fired. core/schedules/firing.py decides.

A schedule's row is locked before it is read for a change or a firing: a concurrent one sees the result.
"""

import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros, to_micros
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
from windlass.store.clock import since_boot
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.signals.hints import Hint
from windlass.store.postgres.verbs.enqueue import enqueue
from windlass.store.postgres.verbs.enqueue_batch import Enqueuer
from windlass.store.records import RowsHeld
from windlass.store.schedules import DueSchedules, schedule_values, to_schedule

MAX_WRITTEN = 1000
"""Per statement: with the largest payloads some sixty megabytes."""
ADVANCED = ("name", "last_at", "next_at", "last_job", "missed", "skipped")
"""The columns that a firing changes."""
MAX_ROUNDS = 10
"""Retries of a firing, while queues are closed at the same moment."""
LOCK_WAIT, LOCK_WAIT_APART = "1s", "100ms"
"""lock_timeout: of a whole firing, and of its parts once that was too short."""
MAX_APART: Micros = 2 * SECOND
"""How long a firing is split: other duties wait."""
_NOTHING = ScheduleSettings()


async def named(db: Db, names: Sequence[str]) -> dict[str, Schedule]:
    """Existing schedules by name."""
    return {row[0]: to_schedule(row) for row in await db.rows("named_schedules", {"names": names})}


async def _locked(db: Db, names: Sequence[str]) -> dict[str, Schedule]:
    """The same, locked."""
    return {row[0]: to_schedule(row) for row in await db.rows("lock_schedules", {"names": names})}


async def all_schedules(db: Db) -> list[Schedule]:
    return [to_schedule(row) for row in await db.rows("schedules")]


async def undeclared(db: Db, schedules: dict[str, ScheduleSettings]) -> bool:
    """A look without a lock: whether anything would change."""
    found = await named(db, list(schedules))
    return any(name not in found or found[name].declared != said for name, said in schedules.items())


async def declare(db: Db, schedules: dict[str, ScheduleSettings]) -> None:
    """What the code says; the operator's change beside it stays."""
    found, now = await _locked(db, list(schedules)), await db.now()
    others = {name: said for name, said in schedules.items() if name in found and found[name].declared != said}
    await _write(db, [reconfigured(found[name], now, said, found[name].changed) for name, said in others.items()])
    new = {name: said for name, said in schedules.items() if name not in found}
    taken = await _make(db, [new_schedule(name, now, declared=said, changed=_NOTHING) for name, said in new.items()])
    if taken:  # another process added it between the read and the insert
        await declare(db, {name: new[name] for name in taken})


async def add(db: Db, name: str, changed: ScheduleSettings) -> Schedule | None:
    """A new schedule; None if the name is taken."""
    record = new_schedule(name, await db.now(), declared=_NOTHING, changed=changed)
    return None if await _make(db, [record]) else record


async def change(db: Db, name: str, changed: ScheduleSettings, was: ScheduleSettings) -> Schedule | None:
    """Replace the operator's change, if it is what it was."""

    def decided(before: Schedule, now: Micros) -> Schedule:
        return before if before.changed != was else reconfigured(before, now, before.declared, changed)

    return await _rewrite(db, name, decided)


async def pause(db: Db, name: str) -> Schedule | None:
    return await _rewrite(db, name, lambda before, now: paused(before))


async def resume(db: Db, name: str) -> Schedule | None:
    return await _rewrite(db, name, resumed)


async def remove(db: Db, name: str) -> bool:
    """Remove it; its jobs stay."""
    return bool(await db.run("drop_schedule", {"name": name}))


async def next_tick(db: Db, name: str | None) -> Micros | None:
    """The next tick; None if there is none, or the schedule is paused or unknown."""
    schedule = (await named(db, [name])).get(name) if name is not None else None
    if schedule is None or schedule.next_at is None or schedule.paused:
        return None
    return to_micros(schedule.next_at)


async def due(db: Db, limit: int) -> DueSchedules:
    """The due schedules, or how long until the next one."""
    rows = await db.rows("due_schedules", {"limit": limit})
    if rows:
        return DueSchedules(rows[0]["now"], tuple(to_schedule(tuple(row)[:-1]) for row in rows), None)
    ((now, first),) = await db.rows("next_tick")
    return DueSchedules(now, (), None if first is None else first - now)


async def fire(db: Db, firings: Sequence[Firing], hint: Hint) -> list[Fired]:
    """Write jobs and schedules in one transaction: both or neither.

    A queue that is closed in between raises QueueClosed, and nothing is stored.
    """
    found = await _locked(db, [each.name for each in firings])
    able = still_valid(found, firings)
    stored = await _enqueuer(db, list(able.values()), hint)
    done = {name: fired(each, stored) for name, each in able.items()}
    after = [after_firing(found[name], each, done[name]) for name, each in able.items()]
    if after:
        await db.run("advance_schedules", _values(after, ADVANCED))
    return [done[each.name] if able.get(each.name) is each else Fired(done=False) for each in firings]


async def _enqueuer(db: Db, firings: Sequence[Firing], hint: Hint) -> set[JobId]:
    """The ids of the jobs that exist. Jobs for closed queues are left out: others do not wait for that."""
    jobs = [job for each in firings for job in each.jobs]
    if not jobs:
        return set()
    closed = {name for (name,) in await db.rows("closed_queues", {"names": sorted({job.queue for job in jobs})})}
    return {each.id for each in await enqueue(db, [job for job in jobs if job.queue not in closed], hint)}


async def _rewrite(db: Db, name: str, decide: Callable[[Schedule, Micros], Schedule]) -> Schedule | None:
    """Lock the row, and write it if it changes."""
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
    """Insert; returns the names that are taken."""
    taken: set[str] = set()
    for some in _parts(sorted(records, key=lambda each: each.name)):
        new = {name for (name,) in await db.rows("add_schedules", {"rows": _values(some)["rows"]})}
        taken |= {each.name for each in some} - new
    return taken


def _parts(records: Sequence[Schedule]) -> Iterator[Sequence[Schedule]]:
    for start in range(0, len(records), MAX_WRITTEN):
        yield records[start : start + MAX_WRITTEN]


def _values(records: Sequence[Schedule], columns: Sequence[str] = Schedule.__struct_fields__) -> dict[str, object]:
    """Schedules as one JSON value."""
    rows = [schedule_values(each, columns) for each in records]
    return {"rows": msgspec.json.encode(rows).decode(), "names": [each.name for each in records]}


async def fire_all(access: Access, enqueuer: Enqueuer, firings: Sequence[Firing]) -> list[Fired]:
    """Fire; if other transactions lock rows of some, fire the others."""
    if not firings:
        return []
    try:
        return await _fire(access, enqueuer, firings, LOCK_WAIT)
    except RowsHeld:
        if len(firings) == 1:
            raise
    ordered = sorted(firings, key=lambda each: [job.queue for job in each.jobs])
    done = await _fire_apart(access, enqueuer, ordered, since_boot() + MAX_APART)
    return [done[id(each)] for each in firings]


async def _fire_apart(
    access: Access, enqueuer: Enqueuer, firings: Sequence[Firing], ends: Micros
) -> dict[int, Fired]:
    """Another transaction locks a queue or key of some: fire the others, then raise."""
    half, held = len(firings) // 2, None
    done: dict[int, Fired] = {}
    # In random order: where many are locked, there is no time for all.
    for part in random.sample([firings[:half], firings[half:]], 2):
        try:
            done |= await _fire_part(access, enqueuer, part, ends)
        except RowsHeld as error:
            held = error
    if held is not None:
        held.maybe_done = True
        raise held
    return done


async def _fire_part(access: Access, enqueuer: Enqueuer, firings: Sequence[Firing], ends: Micros) -> dict[int, Fired]:
    try:
        answers = await _fire(access, enqueuer, firings, LOCK_WAIT_APART)
    except RowsHeld:
        if len(firings) == 1 or since_boot() >= ends:
            raise
        return await _fire_apart(access, enqueuer, firings, ends)
    return {id(each): answer for each, answer in zip(firings, answers, strict=True)}


async def _fire(access: Access, enqueuer: Enqueuer, firings: Sequence[Firing], lock_wait: str) -> list[Fired]:
    for _ in range(MAX_ROUNDS - 1):
        try:
            return await _fire_once(access, enqueuer, firings, lock_wait)
        except QueueClosed:
            continue  # nothing was done; the next round sees that it is closed
    return await _fire_once(access, enqueuer, firings, lock_wait)


async def _fire_once(access: Access, enqueuer: Enqueuer, firings: Sequence[Firing], lock_wait: str) -> list[Fired]:
    async def work(db: Db) -> list[Fired]:
        await db.rows("set_lock_timeout", {"wait": lock_wait})
        return await fire(db, firings, hint)

    with enqueuer.hinting({job.queue for each in firings for job in each.jobs}) as hint:
        return await access.write(work)
