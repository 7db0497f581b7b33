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

    def expired(self, now: Micros) -> bool:
        """Whether it should have started by now."""
        return self.expires_at is not None and self.expires_at <= now

    def move(self, status: Status) -> None:
        """Change status, by the table."""
        assert status is self.status or may_move(self.status, status), f"{self.status} → {status}"
        self.status = status

    def come(self, rank: Micros) -> None:
        """Its time has come: it waits for a worker, or for its turn at its key."""
        self.move(Status.PENDING if self.line is None or self.slot else Status.BLOCKED)
        self.rank = rank
