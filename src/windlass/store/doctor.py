"""The results of an examination: findings for operators, and a census for further checks.

A store checks its own parts (files, settings, schema). It only counts what all stores have (workers, types, queues);
`observe.doctor` checks the counts.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.schedules.schedule import Schedule
from windlass.core.stats.meter import Recent
from windlass.store.records import WorkerInfo

KEY_CHECK = "idempotency keys"
KEY_PORTION = 1000
"""Keys checked by one statement."""
MAX_KEYS_NAMED = 5


class Level(StrEnum):
    """The severity of a finding. Only a problem makes a store unhealthy."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True):
    """The result of one check, and what to do about it."""

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
    """Whether they could run now, given a worker."""
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
    oldest: dict[str, Micros]
    """How long the oldest pending job of each queue has waited."""
    recent: Recent
    """Attempts that ended in the last hour."""


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
    """A number of bytes with its unit."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


class OrphanedKey(msgspec.Struct, frozen=True):
    """A key whose job has ended or is gone, and that nothing frees."""

    queue: str
    hash: str
    job: JobId


def key_findings(seen: int, orphaned: Sequence[OrphanedKey], repair: Callable[[OrphanedKey], str]) -> list[Finding]:
    """The findings. `repair` is the statement that frees one such key."""
    if not orphaned:
        return [ok(KEY_CHECK, f"each of {seen:,} keys belongs to a live job, or to a window that is open")]
    found = [
        problem(
            KEY_CHECK,
            f"queue {each.queue!r}: job {each.job} holds its key for ever, though it has ended or is gone; "
            "an enqueue with that key stores nothing and returns this job",
            f"free the key: {repair(each)}",
        )
        for each in orphaned[:MAX_KEYS_NAMED]
    ]
    if rest := len(orphaned) - len(found):
        found.append(problem(KEY_CHECK, f"{rest:,} more keys are held for ever", "free these, and check again"))
    return found
