"""A flow as a graph, as people and programs read it."""

from datetime import datetime

import msgspec

from windlass.core.ids import JobId
from windlass.core.status import Status


class FlowEdge(msgspec.Struct, frozen=True):
    """A node that another one waits for, and how it must end: completed, dead or ended."""

    node: str
    when: str = "completed"


class FlowNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a graph, or a member or callback of a group; the names are those of REST and `--json`."""

    name: str
    id: JobId
    type: str
    queue: str
    status: Status
    skipped: bool = False
    """Whether it is cancelled because its condition cannot be met."""
    reason: str | None = None
    after: tuple[FlowEdge, ...] = ()
    finished_at: datetime | None = None


class FlowTree(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a flow; each comes after those that it waits for."""

    id: JobId
    name: str | None = None
    status: Status
    nodes: tuple[FlowNode, ...]
    left_out: int = 0
    """Members that are not listed, of a large group, and nodes that the caller may not see."""
