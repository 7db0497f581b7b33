"""What the end of a node means for the nodes below it, for its flow, and for a retry. Pure.

The tables are in docs/guides/flows.md; `tests/client/test_failure_tables.py` and `test_retry_tables.py` read them.
"""

from collections.abc import Iterable
from enum import Enum, StrEnum

import msgspec

from windlass.core.groups.rules import Verdict
from windlass.core.ids import JobId, is_id
from windlass.core.status import FINISHED, Status


class When(StrEnum):
    """The condition of a node on the nodes that it waits for."""

    COMPLETED = "completed"
    """All of them completed."""
    DEAD = "dead"
    """One of them ended without completing: dead, cancelled, or expired."""
    ENDED = "ended"
    """All of them ended, with any outcome."""


class NodeEnd(Enum):
    """What a node counts as."""

    LIVE = "live"
    COMPLETED = "completed"
    LOST = "lost"
    SKIPPED = "skipped"


def node_end(status: Status | None, outcome: str | None, *, skipped: bool) -> NodeEnd:
    """The end of a node with this status; without a status it is not stored, and `outcome` is that of its tombstone,
    if any.
    """
    if status is None:
        return NodeEnd.COMPLETED if outcome == Status.COMPLETED else NodeEnd.LOST
    if status not in FINISHED:
        return NodeEnd.LIVE
    if status is Status.COMPLETED:
        return NodeEnd.COMPLETED
    return NodeEnd.SKIPPED if skipped else NodeEnd.LOST


def when_dead(ends: Iterable[NodeEnd]) -> Verdict:
    """Whether a node with the condition `dead` runs; None while that is undecided."""
    found = set(ends)
    if NodeEnd.LOST in found:
        return Verdict.RUN
    return Verdict.WAIT if NodeEnd.LIVE in found else Verdict.CANCEL


UNMET = "its condition is not met: "


def unmet_reason(node: JobId, status: Status | None) -> str:
    """The reason of a job whose condition cannot be met any more because of this node."""
    return f"{UNMET}{node} is {status or 'not kept any more'}"


def is_unmet(reason: str | None) -> bool:
    """Whether a job was cancelled because its own condition cannot be met."""
    return (reason or "").startswith(UNMET)


def node_in_reason(reason: str | None) -> JobId | None:
    """The node in a reason of `unmet_reason` or `node_ended_reason`; None for other reasons."""
    text = reason or ""
    start = next((each for each in (UNMET, LOST_NODE) if text.startswith(each)), None)
    found = "" if start is None else text[len(start) :].split(" ")[0]
    return found if is_id(found) else None


LOST_NODE = "its node "


def node_ended_reason(node: JobId, name: str | None, status: Status, reason: str | None) -> str:
    """The reason of a flow that is cancelled because this node is lost."""
    named = f" ({name})" if name else ""
    return f"{LOST_NODE}{node}{named} is {status}" + (f": {reason}" if reason else "")


NODE_IN_META = "windlass.node"
"""The key in a node's meta for the name that its producer gave it."""


def name_to_meta(meta: str | None, name: str) -> str:
    """The meta of a node with this name."""
    kept: dict[str, object] = msgspec.json.decode(meta) if meta else {}
    return msgspec.json.encode({**kept, NODE_IN_META: name}).decode()


WHEN_IN_META = "windlass.when"
"""The key in the meta of a node that waits for ends, whatever the outcome."""


def ends_to_meta(meta: str | None) -> str:
    """The meta of a node that waits for ends."""
    kept: dict[str, object] = msgspec.json.decode(meta) if meta else {}
    return msgspec.json.encode({**kept, WHEN_IN_META: When.ENDED}).decode()


def ends_in_meta(meta: object) -> bool:
    """Whether a node waits for ends, whatever the outcome."""
    return isinstance(meta, dict) and meta.get(WHEN_IN_META) == When.ENDED


def name_in_meta(meta: object) -> str | None:
    """The name of a node, if its producer gave it one."""
    found = meta.get(NODE_IN_META) if isinstance(meta, dict) else None
    return found if isinstance(found, str) else None


class FlowPayload(msgspec.Struct, frozen=True):
    """The arguments of a graph's own job."""

    flow: JobId
    nodes: int
    jobs: int
    """Nodes and joins."""
    name: str = ""
    """The name that its producer gave it."""
    digest: str = ""
    """The digest of its nodes and edges."""
