"""The handle on an enqueued graph."""

from typing import Any, Generic, TypeVar, cast, get_origin

from windlass.client.graphs.node import Node
from windlass.client.groups.results import Results
from windlass.client.handle import CANCELLED, Handle, read_result
from windlass.client.runtime.portal import blocking
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.errors import InvalidOption

T = TypeVar("T")
R = TypeVar("R")


class ResultsHandle(Handle[T], eq=False):
    """The handle of a group without `then`: its result are the results of the members."""

    def _result_of(self, job: Job) -> T:
        return cast("T", Results.behind(self._home, self._returns, read_result(job, Any)))


class FlowHandle(Handle[T], Generic[T], eq=False):
    """An enqueued graph. It has no result of its own: `result()` waits until every node has completed or was
    skipped.
    """

    nodes: dict[str, JobId] | None = None
    """The ids of the nodes, by name."""
    _kinds: dict[str, Any] | None = None
    """The result types of the nodes, by name."""

    def __repr__(self) -> str:
        return f"FlowHandle({self.id!r}, {len(self.nodes or ())} nodes)"

    def node(self, node: str | Node[R]) -> Handle[R]:
        """The handle on the job of a node, which is given by itself or by its name."""
        name = node.name if isinstance(node, Node) else node
        if name not in (nodes := self.nodes or {}):
            raise InvalidOption("node", f"the flow has no node {name!r}")
        kind = (self._kinds or {}).get(name, Any)
        made = ResultsHandle if get_origin(kind) is Results else Handle
        return made(self._home, nodes[name], self.existing, kind)

    async def acancel(self, reason: str = CANCELLED) -> Job:
        """Cancel the flow, like `app.flows.cancel`; returns the flow's job."""
        home: Any = self._home
        await home.flows.acancel(self.id, reason)
        return await self.ajob()

    cancel = blocking(acancel)
