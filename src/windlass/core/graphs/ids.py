"""Ids of the jobs of a graph: each follows from the flow's id, as those of a group's members do.

A node has `INDEXES` indexes: the last is its own, the others are for the joins before it. So ids sort in an order in
which every job comes after those that it waits for.
"""

from windlass.core.groups.ids import GROUP_TYPE, is_group_id, member_id, member_index, named_group_id
from windlass.core.ids import JobId

FLOW_TYPE = "windlass.flow"
"""The type of a graph's own job."""
JOIN_TYPE = "windlass.join"
"""The type of joins, the jobs between nodes: they decide about conditions, or gather many parents."""
MAP_TYPE = "windlass.map"
"""The type of the job that adds a member per element."""
FLOW_TYPES = (GROUP_TYPE, FLOW_TYPE)
WATCHER_TYPES = (GROUP_TYPE, FLOW_TYPE, MAP_TYPE)
"""Types of jobs that the ends of their members wake."""
MAX_NODES = 10_000
INDEXES = 104
"""Indexes of one node: at most 2**20 // MAX_NODES."""
MAX_JOINS = INDEXES - 1
"""Joins before one node."""


def is_flow(type_: str, id_: JobId) -> bool:
    """Whether a job is a group or graph; jobs that decide about callbacks have the same type, but other ids."""
    return type_ in FLOW_TYPES and is_group_id(id_)


def node_id(flow: JobId, number: int) -> JobId:
    """The id of the node with this number, from 0."""
    return member_id(flow, number * INDEXES + MAX_JOINS)


def join_id(flow: JobId, number: int, join: int) -> JobId:
    """The id of a join, by its index among those before the node with this number."""
    return member_id(flow, number * INDEXES + join)


def node_number(flow: JobId, id_: JobId) -> int | None:
    """The number of a node; None for a join, and for any other job."""
    index = member_index(flow, id_)
    return index // INDEXES if index is not None and index % INDEXES == MAX_JOINS else None


def map_id(flow: JobId, number: int) -> JobId:
    """The id of the job that adds the members of a node."""
    return named_group_id(f"{flow}:{number}")
