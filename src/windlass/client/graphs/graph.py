"""app.flow(...): a graph of jobs, checked as it is described and stored at the end of its block."""

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, get_origin

import msgspec

from windlass.client.graphs.edges import MAX_DATA_PARENTS, Edges, Needs, joined
from windlass.client.graphs.group_node import group_jobs, returns_of
from windlass.client.graphs.handle import FlowHandle
from windlass.client.graphs.map import map_jobs
from windlass.client.graphs.node import MapNode, Node, NodeResult
from windlass.client.groups.group import Group
from windlass.client.groups.results import Results
from windlass.client.runtime.portal import Portal, as_list, blocking, refuse_on_loop
from windlass.client.runtime.process_id import this_process
from windlass.client.tasks.joint import check_call_connection
from windlass.client.tasks.task import Enqueuer, Task, TaskJob
from windlass.core.codec import encode
from windlass.core.graphs.ids import FLOW_TYPE, MAX_NODES, map_id, node_id
from windlass.core.graphs.rules import FlowPayload, When, ends_to_meta, name_to_meta
from windlass.core.groups.ids import named_group_id, new_group_id
from windlass.core.groups.rules import MIN_POLL
from windlass.core.ids import JobId
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import DEFAULT_TIMEOUT, MAX_ATTEMPTS, MAX_PRIORITY, NewJob
from windlass.core.moments import SECOND
from windlass.core.names import check_key
from windlass.errors import InvalidOption

T = TypeVar("T")
R = TypeVar("R")
Condition = Literal["completed", "dead", "ended"]
MAX_NAME_BYTES = 200
GIVE_FLOW = "give it to the flow, app.flow(name, connection=...)"
_UNNAMED = re.compile(r"#[0-9]+$")


class Graph:
    """A flow that is being described: `add` and `map` return nodes. Nothing is stored before the block ends.

    A node can only wait for nodes that were added before it, so there are no cycles.
    """

    def __init__(self, enqueuer: Enqueuer, name: str | None, connection: object) -> None:
        self.name = "" if name is None else check_key(name, "name", MAX_NAME_BYTES)
        self.id = named_group_id(self.name) if self.name else new_group_id()
        self._enqueuer, self._connection = enqueuer, connection
        self._fresh = "" if self.name else this_process()
        self._nodes: dict[str, Node[Any]] = {}
        self._by_id: dict[JobId, Node[Any]] = {}
        """Also by the job that adds the members of a map."""
        self._maps: dict[JobId, int] = {}
        """The index in `_jobs` of the last job of each map."""
        self._groups: set[JobId] = set()
        """The nodes whose result is Results: groups without `then`."""
        self._jobs: list[NewJob] = []
        self._needs: list[Needs] = []
        self._handle: FlowHandle[None] | None = None

    def __repr__(self) -> str:
        return f"Graph({self.name or self.id!r}, {len(self._nodes)} nodes)"

    def add(
        self,
        job: TaskJob[T] | Group[T],
        *,
        name: str | None = None,
        after: Iterable[Node[Any] | str] = (),
        when: Condition = "completed",
    ) -> Node[T]:
        """A job or group that runs when the nodes `after` have ended as `when` says, and those it takes results of.

        `completed`: all of them completed. `dead`: one of them ended without completing. `ended`: all have ended.
        """
        label = self._label(name, "group" if isinstance(job, Group) else getattr(job, "type", "job"))
        number = len(self._nodes)
        node: Node[T] = Node(self.id, number, node_id(self.id, number), label, returns_of(job))
        if isinstance(job, Group):
            edges = self._edges(label, after, when, ())
            *jobs, ends = group_jobs(node, job, edges, self._fresh)
            meta = None if name is None else name_to_meta(None, name)
            self._keep(node, edges, [*jobs, msgspec.structs.replace(ends, meta=meta)])
            if get_origin(node._returns) is Results:
                self._groups.add(node.id)
            return node
        _check_job(job, label, self._connection)
        edges = self._edges(label, after, when, job.result_params)
        self._store(node, job, edges, explicit=name is not None)
        return node

    def map(
        self,
        task: Task[Any, Any, R],
        over: Sequence[Any],
        *,
        name: str | None = None,
        after: Iterable[Node[Any] | str] = (),
        **arguments: Any,
    ) -> MapNode[R]:
        """A job of `task` for each element of a list that is known at run time: `flow.map(ocr, over=scan.result)`.

        The element is the task's first argument; `arguments` are the same for all. It completes when all have; one
        that dies cancels it. Other nodes get the results in order: `node.result`, or `node.results` one by one.
        """
        label = self._label(name, getattr(task, "type", "map"))
        if not isinstance(task, Task):
            raise InvalidOption(f"node {label!r}", f"must map a task, not {type(task).__name__}")
        check_call_connection(task, f"node {label!r}", self._connection, GIVE_FLOW)
        if not isinstance(over, NodeResult) or over.source in self._groups or over.source != over.node.id:
            problem = "must be node.result, and a list; for one that is known use group(...)"
            raise InvalidOption(f"node {label!r}.over", problem)
        number = len(self._nodes)
        members = map_id(self.id, number)
        node: MapNode[R] = MapNode(self.id, number, node_id(self.id, number), label, members, task.definition.returns)
        edges = self._edges(label, after, "completed", (("items", over.source),))
        adds, ends = map_jobs(node, task, arguments, over.source)
        joins, parents = joined(self.id, number, edges, adds.queue, self._fresh)
        adds = msgspec.structs.replace(adds, parents=parents, fresh=self._fresh)
        meta = None if name is None else name_to_meta(None, name)
        self._keep(node, edges, [*joins, adds, msgspec.structs.replace(ends, meta=meta, fresh=self._fresh)])
        return node

    def _store(self, node: Node[Any], job: TaskJob[Any], edges: Edges, *, explicit: bool) -> None:
        edges = edges.reading_lists(node, self._groups, job, self._fresh)
        joins, parents = joined(self.id, node.number, edges, job.queue, self._fresh)
        keyed: dict[str, Any] = {} if job.idempotency_key is None else {"on_conflict": OnConflict.RAISE}
        meta = name_to_meta(job.meta, node.name) if explicit else job.meta
        own = job.plain(
            id=node.id,
            parent=self.id,
            parents=parents,
            result_params=edges.data,
            flow=self.id,
            fresh=self._fresh,
            meta=ends_to_meta(meta) if edges.when is When.ENDED else meta,
            **keyed,
        )
        self._keep(node, edges, [*joins, own])

    def _keep(self, node: Node[Any], edges: Edges, jobs: list[NewJob]) -> None:
        self._jobs += jobs
        self._nodes[node.name] = self._by_id[node.id] = node
        if isinstance(node, MapNode):
            self._by_id[node.members] = node
            self._maps[node.id] = len(self._jobs) - 1
        self._needs.append(edges.needs)
        for _, source in edges.data:
            if (ends_at := self._maps.get(source)) is not None:  # for the list of a map's results
                ends = self._jobs[ends_at]
                takes = (("results", ends.parents[0]),)
                self._jobs[ends_at] = msgspec.structs.replace(ends, result_params=takes)

    def _label(self, name: str | None, type_: str) -> str:
        if self._handle is not None:
            raise InvalidOption("flow", "is stored already: its block has ended")
        if len(self._nodes) >= MAX_NODES:
            problem = f"is one too many: the limit is {MAX_NODES:,} nodes"
            raise InvalidOption(f"node {name or type_!r}", problem, limit=MAX_NODES)
        if name is not None:
            name = check_key(name, "name", MAX_NAME_BYTES)
            if _UNNAMED.search(name):
                raise InvalidOption(f"node {name!r}", "may not end with # and a number: nodes without a name do")
            if name in self._nodes:
                raise InvalidOption(f"node {name!r}", "exists already: give one of them another name")
            return name
        return f"{type_}#{len(self._nodes)}"

    def _edges(
        self,
        label: str,
        after: Iterable[Node[Any] | str],
        when: str,
        params: Sequence[tuple[str, JobId]],
    ) -> Edges:
        field = f"node {label!r}"
        if when not in list(When):
            raise InvalidOption(f"{field}.when", f"must be completed, dead or ended, not {when!r}")
        waits = tuple(dict.fromkeys(self._known(each, field) for each in _nodes_in(after, field)))
        for param, source in params:
            if not source:
                raise InvalidOption(
                    f"{field}.{param}", "is PREVIOUS, which exists only in chain(...): use node.result"
                )
            if source not in self._by_id:
                raise InvalidOption(f"{field}.{param}", "is the result of a node of another flow")
        if len({source for _, source in params}) > MAX_DATA_PARENTS:
            problem = f"takes the results of more than {MAX_DATA_PARENTS} nodes: use flow.map or group(...) for many"
            raise InvalidOption(field, problem, limit=MAX_DATA_PARENTS)
        needs = Needs.of(field, [self._needs[node.number] for node in waits], waits, When(when))
        needs = needs.taking(field, [(param, self._by_id[source]) for param, source in params], self._needs)
        return Edges(waits, When(when), tuple(params), needs)

    def _known(self, given: Node[Any] | str, field: str) -> Node[Any]:
        name = given.name if isinstance(given, Node) else given
        node = self._nodes.get(name)
        if node is None or (isinstance(given, Node) and node is not given):
            whose = "a node of another flow" if isinstance(given, Node) else "no node that was added before it"
            raise InvalidOption(f"{field}.after", f"{name!r} is {whose}")
        return node

    def __enter__(self) -> Self:
        refuse_on_loop("with app.flow(...)", "async with app.flow(...)")
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if kind is None:
            self.enqueue()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if kind is None:
            await self.aenqueue()

    async def aenqueue(self) -> FlowHandle[None]:
        """Store all nodes, or nothing, as the end of the block does. A flow with this name is not stored again."""
        if not self._nodes:
            raise InvalidOption("flow", "has no nodes: nothing would run")
        is_finished = bool(self.name) and await self._check_same()
        # Nodes of a finished flow may be dropped already: stored again, they would run again.
        jobs = [self._own_job(), *([] if is_finished else self._jobs)]
        handles = await self._enqueuer._enqueue_jobs(jobs, [Any] * len(jobs), self._connection)
        if handles[0].existing and self.name:
            await self._check_same()  # another process may have stored it since the check, with other nodes
        nodes = {name: node.id for name, node in self._nodes.items()}
        kinds = {name: node._returns for name, node in self._nodes.items()}
        self._handle = FlowHandle(handles[0]._home, self.id, handles[0].existing, Any, nodes, kinds)
        return self._handle

    enqueue = blocking(aenqueue, here=lambda flow: flow._connection is not None)

    @property
    def handle(self) -> FlowHandle[None]:
        """The stored flow, after its block."""
        if self._handle is None:
            raise InvalidOption("flow", "is not stored before its block ends")
        return self._handle

    def _own_job(self) -> NewJob:
        payload = FlowPayload(self.id, len(self._nodes), len(self._jobs), self.name, self._digest())
        return NewJob(
            id=self.id,
            type=FLOW_TYPE,
            payload=encode(msgspec.structs.asdict(payload), "payload"),
            queue=self._jobs[0].queue,
            priority=MAX_PRIORITY,
            delay=int(MIN_POLL * SECOND),
            max_attempts=MAX_ATTEMPTS,
            timeout=DEFAULT_TIMEOUT,
            flow=self.id,
            fresh=self._fresh,
        )

    def _digest(self) -> str:
        """The digest of names, types and edges: another graph under the same name is refused. Arguments may
        differ.
        """
        shape = [(job.id, job.type, job.parents, job.result_params, job.when_ended) for job in self._jobs]
        return sha256(msgspec.json.encode((list(self._nodes), shape))).hexdigest()[:32]

    async def _check_same(self) -> bool:
        """Whether the flow is stored and finished; raises InvalidOption if another flow is stored under its name."""
        found = (await self._enqueuer._stored([self.id], self._connection))[0]
        if found is None or not isinstance(found.payload, dict):
            return False
        if found.type != FLOW_TYPE or found.payload.get("digest") != self._digest():
            raise InvalidOption("name", f"there is a flow {self.name!r} with other nodes")
        return found.finished

    def _portal(self) -> Portal:
        return self._enqueuer._portal()


def _nodes_in(after: Any, field: str) -> list[Any]:
    if isinstance(after, Node | str):
        return [after]
    found = as_list(after, f"{field}.after")
    for each in found:
        if not isinstance(each, Node | str):
            raise InvalidOption(f"{field}.after", f"must be nodes or names of nodes, not {type(each).__name__}")
    return found


def _check_job(job: object, label: str, connection: object) -> None:
    """Refuse ids and parents, which the flow sets."""
    field = f"node {label!r}"
    if not isinstance(job, TaskJob):
        raise InvalidOption(field, f"must be a job made with task.job(...), or a group, not {type(job).__name__}")
    if not job.fresh:
        raise InvalidOption(f"{field}.id", "cannot be given: ids follow from the name of the flow")
    if job.parent is not None:
        raise InvalidOption(f"{field}.parent", "cannot be given: that is the flow")
    if job.on_conflict is OnConflict.REPLACE:
        raise InvalidOption(f"{field}.on_conflict", "cannot be replace in a flow: a job that runs stays")
    check_call_connection(job, field, connection, GIVE_FLOW)
