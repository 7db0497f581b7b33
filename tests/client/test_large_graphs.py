"""Graphs of 10,000 nodes, and 10,000 children of one parent, on every store."""

import pytest

from tests.client.labour import Labour
from windlass import App, Status
from windlass.core.graphs.ids import MAX_NODES

COUNTED = ("pending", "blocked", "cancelled")


@pytest.fixture
def wide(app: App) -> App:
    """A flow in which all wait for the first, and the last for all."""

    @app.task
    def work(number: int) -> int:
        return number

    with app.flow("wide") as flow:
        first = flow.add(work.job(0), name="first")
        rest = [flow.add(work.job(number), after=[first]) for number in range(MAX_NODES - 2)]
        flow.add(work.job(1), name="last", after=rest)
    return app


def counts(app: App) -> dict[str, int]:
    return {name: app.stats.counts().totals[name] for name in COUNTED}


def test_all_children_of_one_parent_may_run_when_it_completes(wide: App, labour: Labour) -> None:
    joins = (MAX_NODES - 2 + 99) // 100
    assert counts(wide) == {"pending": 1, "blocked": MAX_NODES - 1 + joins, "cancelled": 0}
    labour.complete()
    for _ in range(10):  # a store may leave some of them to the coordinator
        wide._portal().run(wide._store_handle.connect().tidy())
    assert counts(wide) == {"pending": MAX_NODES - 2, "blocked": 1 + joins, "cancelled": 0}


def test_a_large_flow_is_cancelled_and_retried_as_a_whole(wide: App) -> None:
    found = wide.flows.cancel("wide")
    assert (found.status, found.cancelled, found.live) == (Status.CANCELLED, MAX_NODES, 0)
    found = wide.flows.retry("wide")
    assert (found.cancelled, found.live) == (0, MAX_NODES)
    assert counts(wide)["cancelled"] == 0
