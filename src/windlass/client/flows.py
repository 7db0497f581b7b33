"""`App.group` and `App.flow`: groups and graphs that are made in a block."""

from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from windlass.client.graphs.graph import Graph
from windlass.client.groups.group import Callback, GroupOptions, new_plan
from windlass.client.groups.open_group import OpenGroup
from windlass.client.groups.results import Results

if TYPE_CHECKING:
    from windlass.client.app import App

R = TypeVar("R")


@overload
def open_group(self: "App", id: str | None = None, **options: Unpack[GroupOptions]) -> OpenGroup[Results[Any]]: ...
@overload
def open_group(
    self: "App", id: str | None = None, *, then: Callback[R], **options: Unpack[GroupOptions]
) -> OpenGroup[R]: ...
def open_group(
    self: "App", id: str | None = None, *, then: Callback[Any] | None = None, **options: Unpack[GroupOptions]
) -> OpenGroup[Any]:
    """A group whose members are added one by one: `with app.group("import-7", then=report) as g: g.add(…)`.

    Members run at once; the group ends after the last of them, when the block has ended. Also `async with` and
    `await g.aadd(…)`. The options are those of `windlass.group`. `id` is a name of yours: a program that runs
    again with it adds each member once, in the same order.
    """
    return OpenGroup(self, new_plan(id, then, options))


def new_flow(self: "App", name: str | None = None, *, connection: object = None) -> Graph:
    """A graph of jobs, stored at the end of its block, all or nothing: `with app.flow("order-42") as flow: …`.

    With a name it is stored once. With a `connection`, your commit decides. In a coroutine use `async with`.
    """
    return Graph(self, name, connection)
