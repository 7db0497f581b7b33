"""Figures as read: counters and times, by queue and type, by verb, and totals."""

from collections.abc import Iterable, Sequence

import msgspec

from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND, Micros
from windlass.core.status import Status

OTHER = "other"
MAX_ROWS = 200

COUNTERS = (
    "enqueued",
    "started",
    "completed",
    "failed",
    "retried",
    "cancelled",
    "snoozed",
    "requeued",
    "rescued",
    "stale",
    "dead_attempts",
    "dead_not_retried",
    "dead_raised",
    "dead_crashed",
)
TOTALS = ("leases_lost", "hints_lost", "conflicts", "flows_completed", "flows_dead", "flows_cancelled")
"""At most six: their words are in the header of figures."""
RUN_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
WAIT_SECONDS = (0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400)
CALL_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Timing(msgspec.Struct):
    """A histogram: values up to each bound and above the last, and the sum of all."""

    bins: list[int]
    micros: Micros
    """The sum. A sum of seconds could fall when a runner ends, since it is added up in another order."""

    @property
    def sum(self) -> float:
        """The sum in seconds."""
        return self.micros / SECOND

    @property
    def count(self) -> int:
        return sum(self.bins)

    def copy(self) -> "Timing":
        return Timing(self.bins, self.micros)

    def add(self, other: "Timing") -> None:
        """Both together."""
        self.bins = [mine + theirs for mine, theirs in zip(self.bins, other.bins, strict=True)]
        self.micros += other.micros


class JobFigures(msgspec.Struct):
    """The counts of one queue and type."""

    counters: dict[str, int]
    run: Timing
    wait: Timing


class CallFigures(msgspec.Struct):
    """The counts of one verb of the store."""

    errors: int
    times: Timing


class Reading(msgspec.Struct):
    """Everything that was counted."""

    jobs: dict[tuple[str, str], JobFigures] = {}
    calls: dict[str, CallFigures] = {}
    totals: dict[str, int] = {}

    def add(self, other: "Reading") -> None:
        """Both together; more than MAX_ROWS pairs fall under `other`."""
        for pair, theirs in other.jobs.items():
            known = pair in self.jobs or len(self.jobs) - ((OTHER, OTHER) in self.jobs) < MAX_ROWS
            kept = pair if known else (OTHER, OTHER)
            if (mine := self.jobs.get(kept)) is None:
                self.jobs[kept] = JobFigures(theirs.counters, theirs.run.copy(), theirs.wait.copy())
                continue
            mine.counters = {name: mine.counters[name] + theirs.counters[name] for name in COUNTERS}
            mine.run.add(theirs.run)
            mine.wait.add(theirs.wait)
        for verb, call in other.calls.items():
            if (found := self.calls.get(verb)) is None:
                self.calls[verb] = CallFigures(call.errors, call.times.copy())
            else:
                found.errors += call.errors
                found.times.add(call.times)
        self.totals = {name: self.totals.get(name, 0) + other.totals.get(name, 0) for name in TOTALS}

    def name(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Have a row for each of these: once shown under its name, a pair is never counted under `other`."""
        for pair in pairs:
            if pair not in self.jobs:
                self.jobs[pair] = JobFigures(
                    dict.fromkeys(COUNTERS, 0), _no_times(RUN_SECONDS), _no_times(WAIT_SECONDS)
                )


def _no_times(bounds: Sequence[float]) -> Timing:
    return Timing([0] * (len(bounds) + 1), 0)


def ending_counters(settlement: Settlement) -> tuple[str, ...]:
    """The counters that an ended attempt adds to."""
    match settlement.status:
        case Status.COMPLETED:
            return _COMPLETED
        case Status.FAILED:
            return ("failed", "retried")
        case Status.DEAD:
            return ("failed", f"dead_{_dead_reason(settlement)}")
        case Status.CANCELLED:
            return ("cancelled",)
        case Status.PENDING if settlement.crashes:
            return ("failed", "retried")
        case Status.SCHEDULED if settlement.snoozes:
            return ("snoozed",)
        case _:
            return ()


_COMPLETED = ("completed",)


def _dead_reason(settlement: Settlement) -> str:
    """The reason as in the label `reason`; `core.jobs.outcome` makes the sentence for people."""
    if settlement.crashes:
        return "crashed"
    reason = settlement.reason or ""
    if reason.startswith("failed ") and reason.endswith(" attempts"):
        return "attempts"
    return "not_retried" if reason.endswith(" is not retried") else "raised"
