"""Reads schedules: by name, all of them, or those with a due tick."""

import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.core.moments import Micros
from windlass.core.schedules.firing import Firing, Plan, firing_of
from windlass.core.schedules.schedule import Schedule
from windlass.store.redis.connection.access import Access
from windlass.store.schedules import DueSchedules, schedule_values, to_schedule

_STAMP = struct.Struct(">Q")
_STATE = struct.Struct(">qqqqqqB")
"""Revision, next tick, when it was made, last tick, missed, skipped, paused; its last job comes behind. See
parts/global/schedule_state.lua."""
_DECIDED = struct.Struct(">qqq")
"""The first fields of a state."""
_NEVER = -1

_encode = msgspec.msgpack.Encoder().encode
_settings = msgspec.msgpack.Decoder(tuple[str, str])
_plan = msgspec.msgpack.Decoder(Plan)


class ScheduleState(msgspec.Struct, frozen=True):
    """A schedule as it was read."""

    schedule: Schedule
    stamp: int
    now: Micros
    furthest: Micros
    """Removed schedules may have enqueued jobs up to this tick."""
    plan: bytes | None = None
    """The plan for its due ticks, finished by no process yet."""


class PlannedTicks(msgspec.Struct, frozen=True):
    """Planned ticks, and the current schedule."""

    number: int
    """The number of the plan; later plans have higher ones."""
    firing: Firing
    schedule: Schedule
    asked: Micros
    """When it was read, by the clock of the server with the global keys."""
    furthest: Micros
    """Removed schedules may have enqueued jobs up to this tick."""


def pack_state(schedule: Schedule) -> bytes:
    """The state of a schedule; the script puts the stamp in front of it."""
    values = schedule_values(schedule)
    moments = (_NEVER if values[name] is None else values[name] for name in ("next_at", "created_at", "last_at"))
    state = _STATE.pack(values["revision"], *moments, values["missed"], values["skipped"], values["paused"])
    return state + (values["last_job"] or "").encode()


def pack_settings(schedule: Schedule) -> bytes:
    """The settings of a schedule."""
    values = schedule_values(schedule)
    return _encode((values["declared"], values["changed"]))


def pack_decided(firing: Firing) -> bytes:
    """What follows the stamp in the state of a schedule that has not changed since the decision."""
    return _DECIDED.pack(firing.revision, firing.was_next, firing.created_at)


def pack_plan(firing: Firing) -> bytes:
    """The decision; the script puts the plan's number in front of it."""
    return _encode(firing.plan)


def tick_of(schedule: Schedule) -> Micros | None:
    """The next tick of a schedule; None if there is none, or it is paused."""
    next_at: Micros | None = schedule_values(schedule)["next_at"]
    return None if schedule.paused else next_at


def to_stamp(value: bytes) -> int:
    """The stamp of a state, or the number of a plan."""
    stamp: int = _STAMP.unpack_from(value)[0]
    return stamp


def schedule_from(name: str, state: bytes, settings: bytes | None = None) -> Schedule:
    """The schedule; without its settings it has only a state."""
    values = _STATE.unpack_from(state, _STAMP.size)
    revision, next_, created, last, missed, skipped, paused = values
    job = state[_STAMP.size + _STATE.size :].decode() or None
    declared, changed = ("{}", "{}") if settings is None else _texts_of(settings)
    moments = (None if each == _NEVER else each for each in (last, next_))
    return to_schedule((name, declared, changed, paused, created, *moments, job, missed, skipped, revision))


def to_state(name: str, row: Sequence[Any], now: Micros, furthest: Micros) -> ScheduleState:
    """From state, settings and plan."""
    state, settings, plan = row
    return ScheduleState(schedule_from(name, state, settings), to_stamp(state), now, furthest, plan)


def due_of(kept: ScheduleState) -> PlannedTicks:
    """An unfinished plan. The schedule is as it was then: only the plan changes it."""
    assert kept.plan is not None
    firing = firing_of(kept.schedule, _plan.decode(kept.plan[_STAMP.size :]))
    return PlannedTicks(to_stamp(kept.plan), firing, kept.schedule, kept.now, kept.furthest)


def _texts_of(settings: bytes) -> tuple[str, str]:
    """Settings that were edited by hand into something else are empty."""
    try:
        return _settings.decode(settings)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", ""


MAX_READ = 250
"""Schedules in one call; fewer if their texts are long."""


async def read_by_name(access: Access, names: Sequence[str]) -> tuple[Micros, dict[str, ScheduleState]]:
    """The store's time, and the existing schedules of these names."""
    now, found, at = 0, dict[str, ScheduleState](), 0
    while at < len(names):
        asked = names[at : at + MAX_READ]
        now, furthest, *rows = await access.call_global("read_schedules", [(name,) for name in asked])
        found |= {name: to_state(name, row, now, furthest) for name, row in zip(asked, rows, strict=False) if row}
        at += len(rows)
    return now, found


async def get(access: Access, names: Sequence[str]) -> list[Schedule | None]:
    """Schedules by their names."""
    _, found = await read_by_name(access, names)
    return [found[name].schedule if name in found else None for name in names]


async def all_schedules(access: Access) -> list[Schedule]:
    """Every schedule, by name; not one consistent read."""
    _, found = await read_by_name(access, await all_names(access))
    return [found[name].schedule for name in sorted(found)]


async def all_names(access: Access) -> list[str]:
    """The names of all schedules, unordered, each once."""
    names: dict[str, None] = {}
    cursor = b"0"
    while True:
        cursor, pairs = await access.command("HSCAN", "schedule_states", cursor, "COUNT", MAX_READ)
        names |= dict.fromkeys(name.decode() for name in pairs[::2])
        if cursor == b"0":
            return list(names)


async def due(access: Access, limit: int) -> DueSchedules:
    """Schedules with a due tick, by an index, a portion at a time."""
    found: list[Schedule] = []
    more = True
    while more and len(found) < limit:
        request = min(MAX_READ, limit - len(found)), len(found)
        now, first, more, *rows = await access.call_global("due_schedules", request)
        triples = zip(rows[::3], rows[1::3], rows[2::3], strict=True)
        found += [schedule_from(name.decode(), state, settings) for name, state, settings in triples]
    return DueSchedules(now, tuple(found), int(first) - now if first and not found else None)


async def next_tick(access: Access, name: str | None) -> Micros | None:
    """The next tick of a schedule; None: none, it is paused, or there is no such schedule."""
    state = None if name is None else await access.command("HGET", "schedule_states", name)
    return None if state is None else tick_of(schedule_from(name or "", state))
