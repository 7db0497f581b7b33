"""The edges of a node: what it waits for, how these must end, and the joins that decide it."""

from collections.abc import Collection, Sequence
from typing import Any, Self, get_origin

import msgspec

from windlass.client.graphs.node import Node
from windlass.client.groups.results import Results
from windlass.client.tasks.task import TaskJob
from windlass.core.codec import encode
from windlass.core.graphs.ids import JOIN_TYPE, MAX_JOINS, join_id
from windlass.core.graphs.rules import When
from windlass.core.ids import JobId
from windlass.core.jobs.job import DEFAULT_TIMEOUT, MAX_ATTEMPTS, MAX_PRIORITY, NewJob, ResultParam
from windlass.errors import InvalidOption

MAX_DATA_PARENTS = 100
"""Nodes whose results one node takes."""
MAX_DIRECT = 100
"""Max nodes that one job waits for, since each end rewrites that job; joins gather more."""
MAX_WATCHED = 100
"""Nodes of one condition `dead`."""


class Needs(msgspec.Struct, frozen=True):
    """Sets of nodes, as bits by number: which must have completed, and which not, before a node can run."""

    completed: int = 0
    lost: int = 0

    @classmethod
    def of(cls, field: str, above: Sequence["Needs"], nodes: Sequence[Node[Any]], when: When) -> Self:
        """The condition of a node that waits for these nodes."""
        if not nodes and when is not When.COMPLETED:
            raise InvalidOption(f"{field}.when", f"{when} has no effect without after=[...]")
        if when is When.DEAD and len(nodes) > MAX_WATCHED:
            problem = (
                f"has {len(nodes):,} nodes for when='dead', the limit is {MAX_WATCHED}: use a group with on_dead"
            )
            raise InvalidOption(f"{field}.after", problem, limit=MAX_WATCHED)
        if when is When.ENDED:
            return cls()
        if when is When.DEAD:
            return cls(0, 1 << nodes[0].number if len(nodes) == 1 else 0)
        found = cls()
        for needs, node in zip(above, nodes, strict=True):
            found = found.and_(needs, node)
        return found

    def and_(self, other: "Needs", node: Node[Any]) -> Self:
        """Also require another node, and that it completes."""
        return type(self)(self.completed | other.completed | 1 << node.number, self.lost | other.lost)

    def taking(self, field: str, params: Sequence[tuple[str, Node[Any]]], all_: Sequence["Needs"]) -> Self:
        """Also take the results of these nodes; raises InvalidOption if these results cannot all exist."""
        found = self
        for param, node in params:
            found = found.and_(all_[node.number], node)
            if found.completed & found.lost:
                problem = f"takes the result of {node.name!r}, which cannot be there when this node runs"
                raise InvalidOption(f"{field}.{param}", problem)
        if found.completed & found.lost:
            raise InvalidOption(f"{field}.after", "cannot all be met: a node would have to complete and not complete")
        return found


class Edges(msgspec.Struct, frozen=True):
    """What a node waits for."""

    after: tuple[Node[Any], ...]
    when: When
    data: tuple[ResultParam, ...]
    needs: Needs
    lists: tuple[NewJob, ...] = ()
    """The joins that read the results of groups as lists."""

    def reading_lists(self, node: Node[Any], groups: Collection[JobId], job: TaskJob[Any], fresh: str) -> "Edges":
        """With a join for each of these groups whose results the job takes otherwise than as Results."""
        joins: dict[JobId, NewJob] = {}
        data = list(self.data)
        for index, (param, source) in enumerate(data):
            hint = job.task.definition.signature.annotation(param)
            if source not in groups or (get_origin(hint) or hint) is Results:
                continue
            if source not in joins:
                id_ = join_id(node.flow, node.number, len(joins))
                join = _join(id_, node.flow, [source], {"when": "completed"}, job.queue, fresh)
                joins[source] = msgspec.structs.replace(join, result_params=(("results", source),))
            data[index] = (param, joins[source].id)
        if len(joins) + len(self.after) // MAX_DIRECT + 2 > MAX_JOINS:
            raise InvalidOption(f"node {node.name!r}", "takes the lists of too many groups: let it take Results[T]")
        return msgspec.structs.replace(self, data=tuple(data), lists=tuple(joins.values()))


def single_join(flow: JobId, number: int, edges: Edges, queue: str, fresh: str) -> tuple[list[NewJob], JobId | None]:
    """The joins before a node of several jobs, and the one job for which those wait; None: they wait for none."""
    joins, parents = joined(flow, number, edges, queue, fresh)
    if len(parents) <= 1:
        return joins, parents[0] if parents else None
    joins.append(_join(join_id(flow, number, len(joins)), flow, parents, {"when": "completed"}, queue, fresh))
    return joins, joins[-1].id


def joined(
    flow: JobId, number: int, edges: Edges, queue: str = "default", fresh: str = ""
) -> tuple[list[NewJob], tuple[JobId, ...]]:
    """The joins before a node, and the parents of the node's own job."""
    joins = list(edges.lists)

    def join(parents: Sequence[JobId], when: When, **more: Any) -> JobId:
        id_ = join_id(flow, number, len(joins))
        joins.append(_join(id_, flow, parents, {"when": str(when), **more}, queue, fresh))
        return id_

    data = tuple(dict.fromkeys(source for _, source in edges.data))
    waits = [node.id for node in edges.after if node.id not in data or edges.when is not When.COMPLETED]
    if edges.when is When.DEAD:
        # Once one of several is lost, the first join is cancelled; the second join reads that.
        if len(waits) == 1:
            return joins, (*data, join(waits, When.DEAD, of=waits))
        every = join(waits, When.COMPLETED)
        return joins, (*data, join([every], When.DEAD, of=waits, all_of=every))
    if edges.when is When.COMPLETED and len(waits) + len(data) <= MAX_DIRECT:
        return joins, (*data, *waits)
    for start in range(0, len(waits), MAX_DIRECT):
        waits_for = waits[start : start + MAX_DIRECT]
        # A node that has ended may be retried while others are waited for, so the join reads it again.
        again = {"of": waits_for} if edges.when is When.ENDED else {}
        data = (*data, join(waits_for, edges.when, **again))
    return joins, data


def _join(
    id_: JobId, flow: JobId, parents: Sequence[JobId], payload: dict[str, Any], queue: str, fresh: str
) -> NewJob:
    return NewJob(
        id=id_,
        type=JOIN_TYPE,
        payload=encode(payload, "payload"),
        queue=queue,
        priority=MAX_PRIORITY,
        max_attempts=MAX_ATTEMPTS,
        timeout=DEFAULT_TIMEOUT,
        parent=flow,
        parents=tuple(parents),
        when_ended=payload["when"] != When.COMPLETED,
        flow=flow,
        fresh=fresh,
    )
