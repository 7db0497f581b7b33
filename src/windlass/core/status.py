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

INITIAL: dict[Status, str] = {
    Status.PENDING: "enqueue",
    Status.SCHEDULED: "enqueue with a delay",
    Status.BLOCKED: "enqueue with parents, or waiting for its key",
}
"""The statuses of a new job, and how it gets them."""

MOVES: dict[Status, dict[Status, str]] = {
    Status.SCHEDULED: {
        Status.PENDING: "admit, run now, change",
        Status.BLOCKED: "admit, waits for its key",
        Status.CANCELLED: "cancel, expire, replace",
    },
    Status.BLOCKED: {
        Status.PENDING: "unpark, parents completed, key slot free",
        Status.SCHEDULED: "change, parents completed with a delay",
        Status.CANCELLED: "cancel, expire, replace, a parent ended otherwise",
    },
    Status.PENDING: {
        Status.RUNNING: "claim",
        Status.BLOCKED: "park",
        Status.SCHEDULED: "change, throttle",
        Status.CANCELLED: "cancel, expire, replace",
    },
    Status.RUNNING: {
        Status.COMPLETED: "settle",
        Status.FAILED: "settle",
        Status.DEAD: "settle, rescue",
        Status.CANCELLED: "settle, expire",
        Status.SCHEDULED: "snooze, requeue for another version of the task",
        Status.PENDING: "requeue, rescue",
    },
    Status.FAILED: {
        Status.PENDING: "admit, retry, run now, change",
        Status.BLOCKED: "admit, retry or run now, waits for its key",
        Status.CANCELLED: "cancel, expire, replace",
    },
    # Finished jobs move only by a retry.
    Status.COMPLETED: {Status.PENDING: "retry", Status.BLOCKED: "retry, waits for its key"},
    Status.DEAD: {Status.PENDING: "retry", Status.BLOCKED: "retry, waits for its key"},
    Status.CANCELLED: {Status.PENDING: "retry", Status.BLOCKED: "retry, waits for its key; retry of its parent"},
}
"""The legal moves, and what makes them; docs/lifecycle.md shows them."""

RETRYABLE = FINISHED | {Status.FAILED}
"""What `retry` accepts: finished jobs, and failed ones before their time."""


def may_move(before: Status | None, after: Status) -> bool:
    """Whether a job in status `before` (None: new) may become `after`."""
    return after in (INITIAL if before is None else MOVES[before])
