"""One job in a runner's hands, from claim to settlement."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec

from windlass.blobs.offload import Offload
from windlass.client.context import Home
from windlass.client.task import Definition
from windlass.core.codec import decode, readable, readable_tags
from windlass.core.job import Claimed, Job, LogLine, Progress
from windlass.core.moments import SECOND, Micros, to_datetime, to_micros
from windlass.core.status import Status
from windlass.store.clock import since_boot

MOST_UNSENT_LINES = 200
MANY_RESCUES = 3


class Halt(Enum):
    """Why a running handler was told to end."""

    DRAIN = "its worker stopped"
    TIMEOUT = "it took too long"
    CANCEL = "somebody cancelled it"


class Work:
    """What the runner knows of a job it holds; also the handler's line to the runner."""

    __slots__ = (
        "apart",
        "cancelled_on",
        "claimed",
        "claimed_on",
        "definition",
        "ended_on",
        "halted",
        "halted_on",
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
        self.apart = definition.in_process or self.suspect
        """Whether it runs in a process of its own: its task says so, or it was there when a runner died."""
        self.claimed_on = now
        self.started_on: Micros | None = None
        self.ended_on: Micros | None = None
        self.task: asyncio.Task[Any] | None = None
        self.cancelled_on: Micros | None = None
        self.halted: Halt | None = None
        self.halted_on: Micros = 0
        self.said: Progress | None = None
        self.lines: list[LogLine] = []
        self.unsent: set[Work] | None = None
        """Where to be noted down when the handler says something; shared with whoever sends it on."""

    @property
    def is_async(self) -> bool:
        """Whether its handler awaits what it asks of its context."""
        return self.definition.is_async

    @property
    def home(self) -> Home:
        """The app that its task belongs to."""
        assert self.definition.home is not None
        return self.definition.home

    @property
    def blobs(self) -> Offload | None:
        """Where its payload is if it was too large for the row, and its result goes if that is."""
        return self.home.offload()

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked for it to stop."""
        return self.cancelled_on is not None

    def cancel(self) -> None:
        """Somebody asks for it to stop."""
        if self.cancelled_on is None:
            self.cancelled_on = since_boot()

    def halt(self, why: Halt) -> None:
        """It is told to end; the first reason stands."""
        if self.halted is None:
            self.halted, self.halted_on = why, since_boot()

    @property
    def deadline(self) -> Micros:
        """Until when the handler may take, counted from its own start; 0: any length."""
        if self.started_on is None or not self.claimed.timeout:
            return 0
        return self.started_on + self.claimed.timeout

    @property
    def suspect(self) -> bool:
        """Whether it may have been what killed a runner: then it runs alone, so that the next time we know.

        Losing a whole machine is nobody's fault, but the same job each time is more than chance.
        """
        return bool(self.claimed.crashes or self.claimed.suspicions or self.claimed.rescues >= MANY_RESCUES)

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
            timeout=claimed.timeout / SECOND if claimed.timeout else None,
            expires_at=None if claimed.expires_at is None else to_datetime(claimed.expires_at),
            tags=readable_tags(claimed.tags),
            meta=readable(claimed.meta) if claimed.meta else None,
            tick=None if claimed.tick is None else to_datetime(claimed.tick),
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

    def hear(self, lines: Iterable[LogLine]) -> None:
        """What was said in a process of its own, for the runner to write down."""
        self.lines.extend(lines)
        del self.lines[:-MOST_UNSENT_LINES]
        if self.unsent is not None:
            self.unsent.add(self)


def claimed_of(job: Job) -> Claimed:
    """A running job as its runner holds it, as far as deciding about it needs."""
    fields = {name: getattr(job, name) for name in _SAME}
    return Claimed(
        **fields,
        payload="",
        run_at=to_micros(job.run_at),
        created_at=to_micros(job.created_at),
        claimed_at=to_micros(job.claimed_at or job.created_at),
    )


_SAME = (
    "id",
    "queue",
    "type",
    "attempt",
    "max_attempts",
    "failures",
    "crashes",
    "rescues",
    "suspicions",
    "hand_backs",
    "snoozes",
    "priority",
    "idempotency_key",
    "concurrency_key",
    "tenant",
    "parent",
    "flow",
    "schedule",
)
