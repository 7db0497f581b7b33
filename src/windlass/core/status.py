"""The statuses of a job and the one table of legal moves."""

from enum import StrEnum


class Status(StrEnum):
    """A job's status; the words are the same in SQL, REST, CLI and docs."""

    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    COMPLETED = "completed"
    DEAD = "dead"
    CANCELLED = "cancelled"


WAITING = frozenset({Status.SCHEDULED, Status.BLOCKED, Status.PENDING, Status.FAILED})
LIVE = WAITING | {Status.RUNNING}
FINISHED = frozenset({Status.COMPLETED, Status.DEAD, Status.CANCELLED})

INITIAL = frozenset({Status.SCHEDULED, Status.BLOCKED, Status.PENDING})
"""The statuses of a new job."""

MOVES: dict[Status, frozenset[Status]] = {
    # admitted when due or free, or run now; cancelled by an operator, a parent, its expiry or a replacement
    Status.SCHEDULED: frozenset({Status.PENDING, Status.BLOCKED, Status.CANCELLED}),
    # freed; put off by a change of run_at
    Status.BLOCKED: frozenset({Status.PENDING, Status.SCHEDULED, Status.CANCELLED}),
    # claimed; parked when no live worker knows its type; put off by a change of run_at
    Status.PENDING: frozenset({Status.RUNNING, Status.BLOCKED, Status.SCHEDULED, Status.CANCELLED}),
    # settled; snoozed; rescued or requeued
    Status.RUNNING: frozenset(
        {
            Status.COMPLETED,
            Status.FAILED,
            Status.DEAD,
            Status.CANCELLED,
            Status.SCHEDULED,
            Status.PENDING,
        }
    ),
    Status.FAILED: frozenset({Status.PENDING, Status.BLOCKED, Status.CANCELLED}),
    # finished jobs move only by an operator's retry
    Status.COMPLETED: frozenset({Status.PENDING, Status.BLOCKED}),
    Status.DEAD: frozenset({Status.PENDING, Status.BLOCKED}),
    Status.CANCELLED: frozenset({Status.PENDING, Status.BLOCKED}),
}

RETRYABLE = FINISHED | {Status.FAILED}
"""What `retry` accepts: finished jobs, and failed ones before their time."""


def may_move(before: Status | None, after: Status) -> bool:
    """Whether a job in status `before` (None: new) may become `after`."""
    return after in (INITIAL if before is None else MOVES[before])
