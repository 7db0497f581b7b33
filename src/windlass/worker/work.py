"""One job in a runner's hands, from claim to settlement."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec

from windlass.client.task import Definition
from windlass.core.codec import decode
from windlass.core.job import Claimed, Job, LogLine, Progress
from windlass.core.moments import SECOND, Micros, to_datetime
from windlass.core.status import Status

MOST_UNSENT_LINES = 200


class Work:
    """What the runner knows of a job it holds; also the handler's line to the runner."""

    __slots__ = (
        "broken_off",
        "cancelled",
        "claimed",
        "claimed_on",
        "definition",
        "index",
        "lines",
        "said",
        "started_on",
        "task",
        "unsent",
    )

    def __init__(self, claimed: Claimed, definition: Definition, index: int, now: Micros) -> None:
        self.claimed = claimed
        self.definition = definition
        self.index = index
        self.claimed_on = now
        self.started_on: Micros | None = None
        self.task: asyncio.Task[Any] | None = None
        self.cancelled = False
        self.broken_off = False
        self.said: Progress | None = None
        self.lines: list[LogLine] = []
        self.unsent: set[Work] | None = None
        """Where to be noted down when the handler says something; shared with whoever sends it on."""

    @property
    def started_after(self) -> Micros | None:
        """From the claim to the handler's start."""
        return None if self.started_on is None else max(0, self.started_on - self.claimed_on)

    def job(self) -> Job:
        """The public record, as of the claim."""
        claimed = self.claimed
        fields = {name: getattr(claimed, name) for name in _SAME}
        return Job(
            **fields,
            status=Status.RUNNING,
            payload=decode(claimed.payload),
            run_at=to_datetime(claimed.run_at),
            created_at=to_datetime(claimed.created_at),
            updated_at=to_datetime(claimed.claimed_at),
            claimed_at=to_datetime(claimed.claimed_at),
            timeout=None if claimed.timeout is None else claimed.timeout / SECOND,
            expires_at=None if claimed.expires_at is None else to_datetime(claimed.expires_at),
            tags=tuple(decode(claimed.tags)) if claimed.tags else (),
            meta=decode(claimed.meta) if claimed.meta else None,
            cancel_requested=self.cancelled,
        )

    def progress(self, progress: Progress) -> None:
        """Called by the handler, from whatever thread it is in."""
        self.said = msgspec.structs.replace(progress, at=datetime.now(UTC))
        if self.unsent is not None:
            self.unsent.add(self)

    def log(self, text: str) -> None:
        """Called by the handler, from whatever thread it is in."""
        self.lines.append(LogLine(datetime.now(UTC), self.claimed.attempt, text))
        del self.lines[:-MOST_UNSENT_LINES]
        if self.unsent is not None:
            self.unsent.add(self)


_SAME = (
    "id",
    "queue",
    "type",
    "attempt",
    "max_attempts",
    "failures",
    "crashes",
    "rescues",
    "hand_backs",
    "snoozes",
    "priority",
    "idempotency_key",
    "concurrency_key",
    "tenant",
    "parent",
    "flow",
)
