"""What an examination finds: findings for people, and a census for further checks.

A store examines its own parts (files, settings, schema); what all stores have in common (workers, types, queues) it
only counts, and `observe.doctor` checks.
"""

from enum import StrEnum

import msgspec

from windlass.core.moments import Micros
from windlass.core.schedules.schedule import Schedule
from windlass.store.records import WorkerInfo


class Level(StrEnum):
    """The severity of a finding. Only a problem makes a store unhealthy."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True):
    """One check: its result, and what to do about it."""

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
    """Whether they could run now, if a worker was there."""
    parked: bool = False
    """Whether they are parked because no worker knows their type."""


class Census(msgspec.Struct, frozen=True, kw_only=True):
    """Workers and waiting jobs, counted at one moment of the store's clock."""

    now: Micros
    newest: Micros | None
    """The latest moment written in the store."""
    workers: tuple[WorkerInfo, ...]
    waiting: tuple[Waiting, ...]
    counted_all: bool
    """False: only the first jobs of each kind were counted."""
    paused: tuple[str, ...]
    dead: int
    late_runners: int
    late_jobs: int
    """Jobs of runners whose leases have expired: they wait for a rescue."""
    coordinator: str | None
    schedules: tuple[Schedule, ...]


class Examination(msgspec.Struct, frozen=True):
    """All findings; no census if the jobs cannot be read."""

    findings: tuple[Finding, ...]
    census: Census | None


def ok(check: str, says: str) -> Finding:
    return Finding(Level.OK, check, says)


def note(check: str, says: str, advice: str | None = None) -> Finding:
    return Finding(Level.NOTE, check, says, advice)


def warning(check: str, says: str, advice: str) -> Finding:
    return Finding(Level.WARNING, check, says, advice)


def problem(check: str, says: str, advice: str) -> Finding:
    return Finding(Level.PROBLEM, check, says, advice)


def size(amount: float) -> str:
    """Bytes for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
