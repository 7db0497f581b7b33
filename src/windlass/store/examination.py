"""What an examination finds: findings for people, and a census from which more can be told.

A store examines what only it has (files, settings, schema); what all stores have in common (workers, types, queues)
it only counts, and `observe.doctor` draws the conclusions.
"""

from enum import StrEnum

import msgspec

from windlass.core.moments import Micros
from windlass.core.schedule import Schedule
from windlass.store.records import WorkerInfo


class Level(StrEnum):
    """How bad a finding is. Only a problem makes a store unhealthy."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at: what is so, and what to do about it."""

    level: Level
    check: str
    says: str
    advice: str | None = None


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one type in one queue that have not been started."""

    queue: str
    type: str
    jobs: int
    due: bool
    """Whether they could run now, if there was somebody to run them."""
    parked: bool = False
    """Whether they are set aside because no worker knew their type: starting just any worker does not help them."""


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """Who is there and what waits, counted at one moment of the store's clock."""

    now: Micros
    newest: Micros | None
    """The newest moment that is written in the store."""
    workers: tuple[WorkerInfo, ...]
    waiting: tuple[Waiting, ...]
    counted_all: bool
    """False: there are so many jobs that only the first of each kind were counted."""
    paused: tuple[str, ...]
    dead: int
    late_runners: int
    late_jobs: int
    """Jobs of runners whose leases are over: they wait for a rescue."""
    coordinator: str | None
    schedules: tuple[Schedule, ...]


class Examination(msgspec.Struct, frozen=True):
    """Everything that was found; no census if the jobs cannot be read."""

    findings: tuple[Finding, ...]
    census: Census | None


def ok(check: str, says: str) -> Finding:
    """As it should be."""
    return Finding(Level.OK, check, says)


def note(check: str, says: str, advice: str | None = None) -> Finding:
    """Good to know."""
    return Finding(Level.NOTE, check, says, advice)


def warning(check: str, says: str, advice: str) -> Finding:
    """It works, and may hurt."""
    return Finding(Level.WARNING, check, says, advice)


def problem(check: str, says: str, advice: str) -> Finding:
    """Something does not work, or loses data."""
    return Finding(Level.PROBLEM, check, says, advice)


def size(amount: float) -> str:
    """Bytes for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
