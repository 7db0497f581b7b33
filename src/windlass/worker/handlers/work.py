"""One job that a runner holds, from claim to settlement."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec

from windlass.blobs.offload import Offload
from windlass.client.tasks.link import Home
from windlass.client.tasks.task import Definition
from windlass.core.codec import decode, readable, readable_tags
from windlass.core.groups.ids import is_member_id
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import result_params_of
from windlass.core.jobs.job import SAME_FIELDS, Claimed, Job, LogLine, Progress
from windlass.core.jobs.outcome import Outcome
from windlass.core.moments import SECOND, Micros, to_datetime
from windlass.core.status import Status
from windlass.store.clock import since_boot

MAX_UNSENT_LINES = 200


class Halt(Enum):
    """Why a running handler was halted."""

    DRAIN = "its worker stopped"
    TIMEOUT = "it took too long"
    CANCEL = "it was cancelled"


class Work(msgspec.Struct, eq=False):
    """A job that a runner holds, and the link of its context to the runner."""

    claimed: Claimed
    definition: Definition
    index: int
    claimed_on: Micros
    in_process: bool = False
    """Whether it runs in a handler process: its task asks for one, or it ran in a runner that died."""
    unsent: "set[Work] | None" = None
    """The set to join when there is a new note; shared with the sender of notes."""
    started_on: Micros | None = None
    suspended: Micros = 0
    """Boot clock minus active time when the handler started."""
    ended_on: Micros | None = None
    task: asyncio.Task[Any] | None = None
    """The task of its `async def` handler."""
    outcome: Outcome | None = None
    """The outcome of that handler."""
    trace: tuple[str, str] | None = None
    """The ids of the attempt's trace and span."""
    unawaited: str | None = None
    """The verb that the handler called and never awaited."""
    added_jobs: Counter[str] | None = None
    """Made when the attempt first adds to its group: most never do."""
    cancelled_on: Micros | None = None
    halted: Halt | None = None
    halted_on: Micros = 0
    latest_progress: Progress | None = None
    lines: list[LogLine] = []

    @property
    def added(self) -> Counter[str]:
        """Jobs that the attempt added to its group."""
        if self.added_jobs is None:
            self.added_jobs = Counter()
        return self.added_jobs

    @property
    def is_async(self) -> bool:
        """Whether its handler awaits the verbs of its context."""
        return self.definition.is_async

    @property
    def dead_on(self) -> tuple[type[BaseException], ...]:
        """Errors after which its job is not tried again."""
        return self.definition.dead_on

    @property
    def home(self) -> Home:
        """The app that its task belongs to."""
        assert self.definition.home is not None
        return self.definition.home

    @property
    def blobs(self) -> Offload | None:
        """The blob store of its payload, if that was too large for the row, and of its result, if that is."""
        return self.home.offload()

    @property
    def cancelled(self) -> bool:
        """Whether its cancellation was requested."""
        return self.cancelled_on is not None

    def cancel(self, now: Micros | None = None) -> None:
        """Record the requested cancellation; `now` in active time."""
        if self.cancelled_on is None:
            self.cancelled_on = since_boot() if now is None else now

    def halt(self, why: Halt, now: Micros | None = None) -> None:
        """Halt it; the first reason counts. `now` in active time."""
        if self.halted is None:
            self.halted, self.halted_on = why, since_boot() if now is None else now

    @property
    def deadline(self) -> Micros:
        """The end of its timeout, in active time, counted from the handler's start; 0: no timeout."""
        if self.started_on is None or not self.claimed.timeout:
            return 0
        return self.started_on - self.suspended + self.claimed.timeout

    @property
    def started_after(self) -> Micros | None:
        """Time from the claim to the handler's start."""
        if self.started_on is None:
            return None
        after = self.started_on - self.claimed_on
        return after if after > 0 else 0

    def job(self) -> Job:
        """The public record, as of the claim."""
        claimed = self.claimed
        fields = {name: getattr(claimed, name) for name in SAME_FIELDS}
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
            parents=_parents(claimed),
        )

    def progress(self, progress: Progress) -> None:
        """Called by the handler, from any thread."""
        self.latest_progress = msgspec.structs.replace(progress, at=datetime.now(UTC))
        if self.unsent is not None:
            self.unsent.add(self)

    def log(self, text: str) -> None:
        """Called by the handler, from any thread."""
        self.lines.append(LogLine(datetime.now(UTC), self.claimed.attempt, text))
        del self.lines[:-MAX_UNSENT_LINES]
        if self.unsent is not None:
            self.unsent.add(self)

    def add_lines(self, lines: Iterable[LogLine]) -> None:
        """Log lines from its handler process."""
        self.lines.extend(lines)
        del self.lines[:-MAX_UNSENT_LINES]
        if self.unsent is not None:
            self.unsent.add(self)


def _parents(claimed: Claimed) -> tuple[JobId, ...]:
    """The parents: a link of a chain has one, after the first. Children of handlers and of groups waited for no
    job.

    A member that takes a result of a job waited for that job.
    """
    parent = claimed.parent
    if claimed.result_params:
        return tuple(dict.fromkeys(before for _, before in result_params_of(claimed.result_params)))
    if parent is None or claimed.flow in (None, claimed.id) or is_member_id(parent, claimed.id):
        return ()
    return (parent,)
