"""Large graphs, and thousands of children of one parent, on every store."""

from typing import Any

import pytest

from tests.client.labour import Labour
from tests.support.parts import in_part
from windlass import App, Node, Status
from windlass.client.graphs import members, watch
from windlass.core.graphs.ids import MAX_NODES
from windlass.testing import run_all

SIZES = in_part([1_000, MAX_NODES], [1_000])


def enqueue_wide(app: App, size: int) -> None:
    """A flow in which all wait for the first, and the last for all."""

    @app.task
    def work(number: int) -> int:
        return number

    with app.flow("wide") as flow:
        first = flow.add(work.job(0), name="first")
        rest = [flow.add(work.job(number), after=[first]) for number in range(size - 2)]
        flow.add(work.job(1), name="last", after=rest)


def nodes(app: App, status: str) -> int:
    return app.jobs.count(type="work", status=status)


@pytest.mark.parametrize("size", SIZES)
def test_all_children_of_one_parent_may_run_when_it_completes(app: App, labour: Labour, size: int) -> None:
    enqueue_wide(app, size)
    assert (nodes(app, "pending"), nodes(app, "blocked")) == (1, size - 1)
    labour.complete()
    for _ in range(10):  # a store may leave some of them to the coordinator
        app._portal().run(app._store_handle.connect().tidy())
    assert (nodes(app, "pending"), nodes(app, "blocked")) == (size - 2, 1)


@pytest.mark.parametrize("size", SIZES)
def test_a_large_flow_is_cancelled_and_retried_as_a_whole(app: App, size: int) -> None:
    enqueue_wide(app, size)
    found = app.flows.cancel("wide")
    assert (found.status, found.cancelled, found.live) == (Status.CANCELLED, size, 0)
    found = app.flows.retry("wide")
    assert (found.cancelled, found.live) == (0, size)
    assert nodes(app, "cancelled") == 0


def test_the_last_look_of_a_large_flow_counts_its_nodes_and_reads_no_page(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    def work(number: int) -> int:
        return number

    read: list[int] = []

    async def count_nodes(*args: Any) -> int:
        read.append(await members.count_nodes(*args))
        return read[-1]

    monkeypatch.setattr(members, "PAGE", 2)
    monkeypatch.setattr(watch, "count_nodes", count_nodes)
    with app.flow("pair by pair") as flow:
        before: list[Node[int]] = []
        for number in range(6):
            before = [flow.add(work.job(number), after=before)]
        flow.add(work.job(6), after=before, when="ended")
    run_all(app)
    assert app.flows.get("pair by pair").status is Status.COMPLETED
    assert 7 not in read, "looks before the last may read"
