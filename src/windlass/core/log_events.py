"""Events that are only for logs and metrics."""

from windlass.core.events import Event
from windlass.core.ids import JobId
from windlass.core.status import Status


class FailuresRepeated(Event, frozen=True, kw_only=True):
    """More attempts of a type failed in the same way than are logged one by one."""

    type: str
    queue: str
    status: Status
    error: str
    times: int
    """How many were not logged one by one."""
    duration: float


class FlowEnded(Event, frozen=True, kw_only=True):
    """A group or graph has ended: completed, cancelled because of a member or node, or dead, if its own job is.

    If `flows.cancel` ended it, the coordinator emits it.
    """

    flow: JobId
    kind: str
    """group or graph."""
    queue: str
    status: Status


class GroupStaysOpen(Event, frozen=True, kw_only=True):
    """A worker with `--until-empty` waits for an open group that was not sealed, although its members have ended."""

    flow: JobId


class JobsClaimed(Event, frozen=True, kw_only=True):
    """A runner claimed jobs; emitted only if completions are logged too."""

    worker: str
    jobs: int
    queues: tuple[str, ...]


class OperatorActed(Event, frozen=True, kw_only=True):
    """An operator changed a job, a queue, a schedule or a token; the audit has the details."""

    actor: str
    source: str
    action: str
    target: str
