"""Events that are only for logs."""

from windlass.core.events import Event
from windlass.core.status import Status


class FailuresRepeated(Event, frozen=True, kw_only=True):
    """More attempts of a type failed in the same way than are worth a line each."""

    type: str
    queue: str
    status: Status
    error: str
    times: int
    """Without those that have a line."""
    duration: float


class JobsClaimed(Event, frozen=True, kw_only=True):
    """A runner claimed jobs; only if completions are logged too."""

    worker: str
    jobs: int
    queues: tuple[str, ...]


class OperatorActed(Event, frozen=True, kw_only=True):
    """An operator changed a job, a queue, a schedule or a token; the audit has the details."""

    actor: str
    source: str
    action: str
    target: str
