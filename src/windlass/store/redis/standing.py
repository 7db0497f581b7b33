"""A schedule as the office keeps it: what it says, where it stands, and what is done about its ticks just now."""

import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.core.firing import Firing, Plan, planned
from windlass.core.moments import Micros
from windlass.core.schedule import Schedule
from windlass.store.schedules import schedule_values, to_schedule

_STAMP = struct.Struct(">Q")
_STANDS = struct.Struct(">qqqqqqB")
"""Revision, next tick, when it was made, last tick, missed, skipped, paused; its last job comes behind. See
parts/standing.lua."""
_DECIDED = struct.Struct(">qqq")
"""How that begins."""
_NEVER = -1

_encode = msgspec.msgpack.Encoder().encode
_settings = msgspec.msgpack.Decoder(tuple[str, str])
_plan = msgspec.msgpack.Decoder(Plan)


class Kept(msgspec.Struct, frozen=True):
    """A schedule as it was read."""

    schedule: Schedule
    stamp: int
    now: Micros
    furthest: Micros
    """Up to this tick schedules that were removed may have handed in jobs."""
    plan: bytes | None = None
    """What is done about its ticks, if somebody is at it, or has died over it."""


class Due(msgspec.Struct, frozen=True):
    """Ticks that were planned, and the schedule as it stands."""

    number: int
    """Of the plan: a later one has a higher number."""
    firing: Firing
    schedule: Schedule
    asked: Micros
    """When this was true, by the office's clock."""
    furthest: Micros
    """Up to this tick schedules that were removed may have handed in jobs."""


def pack_standing(schedule: Schedule) -> bytes:
    """Where a schedule stands; the stamp is put in front of it by the office."""
    values = schedule_values(schedule)
    moments = (_NEVER if values[name] is None else values[name] for name in ("next_at", "created_at", "last_at"))
    stands = _STANDS.pack(values["revision"], *moments, values["missed"], values["skipped"], values["paused"])
    return stands + (values["last_job"] or "").encode()


def pack_settings(schedule: Schedule) -> bytes:
    """What a schedule says."""
    values = schedule_values(schedule)
    return _encode((values["declared"], values["changed"]))


def pack_decided(firing: Firing) -> bytes:
    """What a schedule that stands as it was decided has behind its stamp."""
    return _DECIDED.pack(firing.revision, firing.was_next, firing.created_at)


def pack_plan(firing: Firing) -> bytes:
    """What was decided; the number is put in front of it by the office."""
    return _encode(firing.plan)


def tick_of(schedule: Schedule) -> Micros | None:
    """When it has something to do; None: never, or it is paused."""
    next_at: Micros | None = schedule_values(schedule)["next_at"]
    return None if schedule.paused else next_at


def to_stamp(value: bytes) -> int:
    """Of a standing, or the number of a plan."""
    stamp: int = _STAMP.unpack_from(value)[0]
    return stamp


def standing_schedule(name: str, standing: bytes, settings: bytes | None = None) -> Schedule:
    """The schedule; without its settings it only stands somewhere."""
    stands = _STANDS.unpack_from(standing, _STAMP.size)
    revision, next_, created, last, missed, skipped, paused = stands
    job = standing[_STAMP.size + _STANDS.size :].decode() or None
    declared, changed = ("{}", "{}") if settings is None else _said(settings)
    moments = (None if each == _NEVER else each for each in (last, next_))
    return to_schedule((name, declared, changed, paused, created, *moments, job, missed, skipped, revision))


def to_kept(name: str, row: Sequence[Any], now: Micros, furthest: Micros) -> Kept:
    """From standing, settings and plan."""
    standing, settings, plan = row
    return Kept(standing_schedule(name, standing, settings), to_stamp(standing), now, furthest, plan)


def due_of(kept: Kept) -> Due:
    """What somebody has planned and not finished. The schedule is as it was then: only the plan changes it."""
    assert kept.plan is not None
    firing = planned(kept.schedule, _plan.decode(kept.plan[_STAMP.size :]))
    return Due(to_stamp(kept.plan), firing, kept.schedule, kept.now, kept.furthest)


def _said(settings: bytes) -> tuple[str, str]:
    """What somebody edited by hand into something else says nothing."""
    try:
        return _settings.decode(settings)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", ""
