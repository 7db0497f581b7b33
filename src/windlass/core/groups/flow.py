"""A flow as people and programs see it."""

from datetime import datetime

import msgspec

from windlass.core.ids import JobId
from windlass.core.status import Status


class FlowCallback(msgspec.Struct, frozen=True):
    """A callback of a group."""

    role: str
    """then, on_dead or always."""
    id: JobId
    type: str
    status: Status


class Flow(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A group or graph of jobs; the names are those of REST and `--json`."""

    id: JobId
    kind: str = "group"
    """group or graph."""
    name: str | None = None
    """The name that its producer gave it."""
    status: Status
    """The status of the flow's own job: completed if all members completed, or all nodes of a graph completed or
    were skipped; cancelled if one is lost; else scheduled, or for a moment pending or running.
    """
    reason: str | None = None
    size: int
    completed: int
    """In a list, the number at the last count of the group."""
    dead: int = 0
    cancelled: int = 0
    skipped: int = 0
    """Nodes of a graph whose condition cannot be met."""
    need: int | str | None = None
    """How many members must complete: a number, or a share such as 95%; None: all."""
    sealed: bool = True
    """False: it is open, and more members may come."""
    callbacks: tuple[FlowCallback, ...] = ()
    waits_for: JobId | None = None
    """The first member that has not ended."""
    created_at: datetime
    finished_at: datetime | None = None

    @property
    def live(self) -> int:
        """Members that have not ended."""
        return max(0, self.size - self.completed - self.dead - self.cancelled - self.skipped)
