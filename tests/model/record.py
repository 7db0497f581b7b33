"""What the reference knows of a job."""

from dataclasses import dataclass, field

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.status import Status, may_move


@dataclass
class Job:
    """One job; `line` is its concurrency key."""

    id: JobId
    queue: str
    type: str
    priority: int
    key: str | None
    rank: Micros
    run_at: Micros
    max_attempts: int
    status: Status
    window: Micros
    expires_at: Micros | None
    line: str | None
    limit: int
    strict: bool
    slot: bool = False
    attempt: int = 0
    failures: int = 0
    crashes: int = 0
    runner: str | None = None
    claim: int | None = None
    cancel_requested: bool = False
    finished_at: Micros = 0
    ended: dict[int, str] = field(default_factory=dict)
    """attempt → how it ended"""
    result: str | None = None
    lag: Micros = 0
    """How long after its last parent's completion it is due."""
    parents: tuple[JobId, ...] = ()
    waits_for: set[JobId] = field(default_factory=set)
    """Those of its parents that have not completed, be they live, over, or gone."""
    when_ended: bool = False
    """Whether any end of its parents lets it go on."""
    result_params: frozenset[JobId] = frozenset()
    parent_results: dict[JobId, str | None] = field(default_factory=dict)
    """parent → the result that came from it"""
    cancelled_by_parent: bool = False
    """Whether it was cancelled because a parent ended badly, and not by itself."""

    def expired(self, now: Micros) -> bool:
        """Whether it should have started by now."""
        return self.expires_at is not None and self.expires_at <= now

    def move(self, status: Status) -> None:
        """Change status, by the table."""
        assert status is self.status or may_move(self.status, status), f"{self.status} → {status}"
        self.status = status

    def inherit(self, parent: "Job") -> None:
        """A parent has completed."""
        self.waits_for.discard(parent.id)
        if parent.id in self.result_params:
            self.parent_results[parent.id] = parent.result

    def go_on(self, now: Micros) -> None:
        """The last of its parents has completed: it is due, at the earliest after its own delay."""
        self.run_at = self.rank = max(self.run_at, now + self.lag)
        if self.run_at > now:
            self.move(Status.SCHEDULED)
        else:
            self.come(now)

    def begin_anew(self) -> None:
        """A fresh budget, and no expiry."""
        self.failures = self.crashes = 0
        self.cancel_requested = self.cancelled_by_parent = False
        self.expires_at = None

    def come(self, rank: Micros) -> None:
        """Its time has come: it waits for a worker, or for its turn at its key."""
        self.move(Status.PENDING if self.line is None or self.slot else Status.BLOCKED)
        self.rank = rank
