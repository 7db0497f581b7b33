"""Graphs in histories made by hand: those whose nodes ran as their conditions say pass, others do not."""

from collections.abc import Callable

import pytest

from tests.torture.test_checker import Tale
from windlass.core.graphs.ids import FLOW_TYPE, JOIN_TYPE, join_id, node_id
from windlass.core.graphs.rules import node_ended_reason, unmet_reason
from windlass.core.groups.ids import named_group_id
from windlass.core.status import Status

FLOW = named_group_id("order")
PAY, REFUND = node_id(FLOW, 0), node_id(FLOW, 1)
JOIN = join_id(FLOW, 1, 0)


class Graphs(Tale):
    """A node, and one that runs if it is lost."""

    def __init__(self) -> None:
        super().__init__()
        for job in (FLOW, PAY, JOIN, REFUND):
            self.enqueue(job)
        self.keep(FLOW, type=FLOW_TYPE, status="scheduled", payload={"flow": FLOW, "nodes": 2})
        self.keep(JOIN, type=JOIN_TYPE, status="blocked", payload={"when": "dead", "of": [PAY]})
        self.keep(REFUND, status="blocked")

    def lose(self, job: str) -> None:
        self.claim(job)
        self.start(job)
        self.end(job, outcome="Raised")
        self.settle(job, status="dead")
        self.keep(job, failures=1)

    def skip(self) -> None:
        self.keep(JOIN, status="cancelled", reason=unmet_reason(PAY, Status.COMPLETED))
        self.keep(REFUND, status="cancelled")

    def look(self, status: str = "completed", reason: str | None = None) -> None:
        """The graph looks, and ends."""
        self.claim(FLOW)
        self.start(FLOW)
        self.end(FLOW)
        self.settle(FLOW, status=status)
        self.keep(FLOW, reason=reason)

    def lost(self) -> None:
        self.look("cancelled", node_ended_reason(PAY, "pay", Status.DEAD, None))


def the_node_completes(graphs: Graphs) -> None:
    graphs.run(PAY)
    graphs.skip()
    graphs.look()


def the_node_is_lost(graphs: Graphs) -> None:
    graphs.lose(PAY)
    graphs.run(JOIN)
    graphs.run(REFUND)
    graphs.lost()


# Bad ones.


def what_waits_for_a_death_runs_without_one(graphs: Graphs) -> None:
    graphs.run(PAY)
    graphs.run(JOIN)
    graphs.run(REFUND)
    graphs.look()


def the_graph_completes_with_a_dead_node(graphs: Graphs) -> None:
    graphs.lose(PAY)
    graphs.run(JOIN)
    graphs.run(REFUND)
    graphs.look()


def the_graph_is_lost_without_a_loss(graphs: Graphs) -> None:
    graphs.run(PAY)
    graphs.skip()
    graphs.lost()


def the_graph_waits_in_vain(graphs: Graphs) -> None:
    graphs.run(PAY)
    graphs.skip()


GOOD = [the_node_completes, the_node_is_lost]
BAD = [
    what_waits_for_a_death_runs_without_one,
    the_graph_completes_with_a_dead_node,
    the_graph_is_lost_without_a_loss,
    the_graph_waits_in_vain,
]


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.__name__)
def test_a_graph_that_ends_as_its_nodes_passes(good: Callable[[Graphs], None]) -> None:
    graphs = Graphs()
    good(graphs)
    report = graphs.judge()
    assert "I21" not in report.laws, str(report)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
def test_a_graph_that_does_not_is_caught(bad: Callable[[Graphs], None]) -> None:
    graphs = Graphs()
    bad(graphs)
    report = graphs.judge()
    assert "I21" in report.laws, str(report)
