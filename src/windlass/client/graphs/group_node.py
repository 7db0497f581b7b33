"""A group as a node of a graph: its members wait for what the node waits for, and the node passes on its result."""

from copy import copy
from types import GenericAlias
from typing import Any

import msgspec

from windlass.client.graphs.edges import Edges, single_join
from windlass.client.graphs.node import Node
from windlass.client.groups.group import Group
from windlass.client.groups.plan import queue_of
from windlass.client.groups.results import Results
from windlass.client.tasks.task import TaskJob
from windlass.core.codec import encode
from windlass.core.graphs.ids import JOIN_TYPE, map_id
from windlass.core.graphs.rules import When
from windlass.core.groups.ids import Role
from windlass.core.jobs.job import DEFAULT_TIMEOUT, MAX_ATTEMPTS, MAX_PRIORITY, NewJob
from windlass.errors import InvalidOption


def group_jobs(node: Node[Any], group: Group[Any], edges: Edges, fresh: str) -> list[NewJob]:
    """The joins before the node, the jobs of the group, and the node's job, which completes after the group."""
    field = f"node {node.name!r}"
    if group._rules.name:
        raise InvalidOption(f"{field}.id", "cannot be given: ids follow from the name of the flow")
    own = copy(group)
    own.id = map_id(node.flow, node.number)
    own._read_all()
    for index, part in enumerate(own._parts):
        if getattr(part, "result_params", ()):
            raise InvalidOption(f"{field}.jobs[{index}]", "takes a result; members of a node take none: use flow.map")
    queue = queue_of(own._parts, own._callbacks)
    joins, before = single_join(node.flow, node.number, edges, queue, fresh)
    linked = own._linked(before)
    ends = NewJob(
        id=node.id,
        type=JOIN_TYPE,
        payload=encode({"when": str(When.ENDED)}, "payload") if edges.when is When.ENDED else "{}",
        queue=queue,
        priority=MAX_PRIORITY,
        max_attempts=MAX_ATTEMPTS,
        timeout=DEFAULT_TIMEOUT,
        parent=node.flow,
        parents=(linked.end,),
        result_params=(("value", linked.end),),
        flow=node.flow,
        fresh=fresh,
    )
    jobs = [msgspec.structs.replace(job, fresh=fresh) for job in linked.jobs]
    return [*joins, *jobs, ends]


def returns_of(job: object) -> Any:
    """The type of a node's result; that of a group is the result of `then`, or else those of its members."""
    last = job._callbacks.get(Role.THEN) if isinstance(job, Group) else job
    if isinstance(job, Group) and last is None:
        return GenericAlias(Results, (job._returns,))
    return last.task.definition.returns if isinstance(last, TaskJob) else Any
