"""A node of a graph, and what stands for its result in the arguments of another."""

from types import GenericAlias
from typing import Any, Generic, TypeVar, cast

from windlass.client.groups.results import Results
from windlass.client.tasks.previous import Placeholder
from windlass.core.ids import JobId

T = TypeVar("T")


class NodeResult(Placeholder):
    """Stands for the result of a node. To a type checker it is the result itself; no payload can contain it."""

    def __init__(self, node: "Node[Any]", source: JobId) -> None:
        self.node, self.source = node, source

    def __repr__(self) -> str:
        return f"{self.node!r}.result"


class Node(Generic[T]):
    """A job of a flow: give it to `after=`, and its `result` to the job of another node."""

    def __init__(self, flow: JobId, number: int, id: JobId, name: str, returns: Any = Any) -> None:
        self.flow, self.number, self.id, self.name = flow, number, id, name
        self._returns = returns

    def __repr__(self) -> str:
        return f"Node({self.name!r})"

    @property
    def result(self) -> T:
        """Stands for the result, as an argument of a job in the same flow, which then waits for this node."""
        return cast("T", NodeResult(self, self.id))


class MapNode(Node[list[T]]):
    """A node with a job per element; its result is the list of their results, in the order of the elements."""

    def __init__(self, flow: JobId, number: int, id: JobId, name: str, members: JobId, returns: Any = Any) -> None:
        super().__init__(flow, number, id, name, GenericAlias(list, (returns,)))
        self.members = members

    @property
    def results(self) -> Results[T]:
        """Stands for the results as `Results[T]`, read one by one: for any number of them."""
        return cast("Results[T]", NodeResult(self, self.members))
