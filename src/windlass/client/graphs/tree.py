"""The nodes and edges of a graph, read from its jobs; joins are left out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from windlass.client.graphs.members import PAGE, Skips, member_ids
from windlass.client.graphs.verbs import payload_of
from windlass.client.groups.members import pages_of
from windlass.core.graphs.ids import JOIN_TYPE, map_id, node_number
from windlass.core.graphs.rules import When, name_in_meta
from windlass.core.graphs.tree import FlowEdge, FlowNode, FlowTree
from windlass.core.groups.ids import GROUP_TYPE, Role, callback_id, member_index
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.status import Status
from windlass.store.contract import OperatorStore

ALL = tuple(Status)


async def graph_tree(operator: OperatorStore, job: Job) -> FlowTree:
    """Every node that is kept, with the nodes that it waits for."""
    ids = [id_ async for page in member_ids(operator, job.id, ALL) for id_ in page]
    members = await _get(operator, ids)
    last = [each for id_, each in members.items() if each.type == JOIN_TYPE and node_number(job.id, id_) is not None]
    maps = await _get(operator, [map_id(job.id, node_number(job.id, each.id) or 0) for each in last])
    skips, skipped = Skips(operator, job.id), set[JobId]()
    for start in range(0, len(ids), PAGE):
        skipped |= await skips.among([members[id_] for id_ in ids[start : start + PAGE] if id_ in members])
    nodes = tuple(_Shape(job.id, members, maps).nodes(skipped))
    payload = payload_of(job)
    return FlowTree(
        id=job.id,
        name=payload.name or None,
        status=job.status,
        nodes=nodes,
        left_out=max(0, payload.nodes - len(nodes)),
    )


async def group_tree(operator: OperatorStore, job: Job, limit: int) -> FlowTree:
    """The first members of a group, and its callbacks, which wait for them."""
    payload = job.payload if isinstance(job.payload, dict) else {}
    size, name = int(payload.get("size") or 0), str(payload.get("name") or "")
    ids: list[JobId] = []
    async for page in pages_of(operator, job.id, ALL, size=min(PAGE, limit + 1)):
        ids += page
        if len(ids) > limit:
            break
    total = job.progress.total if job.progress is not None else None
    size = max(size, int(total or 0), len(ids))
    found = await _get(operator, ids[:limit])
    members = [_plain_node(_member_name(job.id, each), each) for _, each in sorted(found.items())]
    callbacks = await operator.get([callback_id(job.id, role) for role in Role])
    after = {Role.THEN: When.COMPLETED, Role.ON_DEAD: When.DEAD, Role.ALWAYS: When.ENDED}
    nodes = [
        _plain_node(role.name.lower(), each, tuple(FlowEdge(member.name, str(after[role])) for member in members))
        for role, each in zip(Role, callbacks, strict=True)
        if each is not None
    ]
    return FlowTree(
        id=job.id, name=name or None, status=job.status, nodes=(*members, *nodes), left_out=size - len(members)
    )


def _member_name(group: JobId, member: Job) -> str:
    index = member_index(group, member.id)
    return f"{member.type}#{member.id if index is None else index}"


def _plain_node(name: str, job: Job, after: tuple[FlowEdge, ...] = ()) -> FlowNode:
    return FlowNode(
        name=name,
        id=job.id,
        type=job.type,
        queue=job.queue,
        status=job.status,
        reason=job.reason,
        after=after,
        finished_at=job.finished_at,
    )


async def _get(operator: OperatorStore, ids: Sequence[JobId]) -> dict[JobId, Job]:
    pages = [ids[start : start + PAGE] for start in range(0, len(ids), PAGE)]
    return {job.id: job for page in pages for job in await operator.get(page) if job is not None}


class _Shape:
    """The jobs of a graph, by id."""

    def __init__(self, flow: JobId, members: Mapping[JobId, Job], maps: Mapping[JobId, Job]) -> None:
        self._flow, self._members, self._maps = flow, members, maps
        self._nodes = {id_: job for id_, job in sorted(members.items()) if node_number(flow, id_) is not None}
        self._names = {id_: self._name(job) for id_, job in self._nodes.items()}
        for job in self._nodes.values():
            if adds := self._adds(job):
                self._names |= dict.fromkeys((adds.id, *job.parents), self._names[job.id])

    def nodes(self, skipped: set[JobId]) -> Iterator[FlowNode]:
        """In the order in which they were added."""
        for id_, job in self._nodes.items():
            yield FlowNode(
                name=self._names[id_],
                id=id_,
                type=self._type(job),
                queue=job.queue,
                status=job.status,
                skipped=id_ in skipped,
                reason=job.reason,
                after=tuple(dict.fromkeys(self._edges(job))),
                finished_at=job.finished_at,
            )

    def _name(self, job: Job) -> str:
        return name_in_meta(job.meta) or f"{self._label(job)}#{node_number(self._flow, job.id)}"

    def _label(self, job: Job) -> str:
        return "group" if self._type(job) == GROUP_TYPE else self._type(job)

    def _adds(self, job: Job) -> Job | None:
        """The job that has the members of this node, if the node is a map or a group."""
        number = node_number(self._flow, job.id)
        return None if number is None else self._maps.get(map_id(self._flow, number))

    def _type(self, job: Job) -> str:
        """The type of a node; of a map, the type of its members."""
        adds = self._adds(job)
        mapped = adds.payload.get("type") if adds is not None and isinstance(adds.payload, dict) else None
        return str(mapped) if mapped else job.type if adds is None else adds.type

    def _edges(self, job: Job) -> Iterable[FlowEdge]:
        if adds := self._adds(job):
            return self._through(adds.parents, When.COMPLETED)
        return self._through(job.parents, When.COMPLETED)

    def _through(self, parents: Sequence[JobId], when: When) -> Iterator[FlowEdge]:
        """The nodes behind these jobs; a join is replaced by the nodes that it joins."""
        for id_ in parents:
            if id_ in self._names:
                yield FlowEdge(self._names[id_], str(when))
            elif (join := self._members.get(id_)) is not None and isinstance(join.payload, dict):
                yield from self._through(join.payload.get("of") or join.parents, When(join.payload.get("when", when)))
