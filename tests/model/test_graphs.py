"""Graphs against a small reference: any shape, any conditions, any outcomes, and a retry of what was lost."""

from typing import Any, NamedTuple

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from windlass import App, Cancel, Dead, Status
from windlass.testing import run_all

MAX_NODES = 7
LOST = ("dead", "cancelled")


class Drawn(NamedTuple):
    """A node: the places of those that it waits for, its condition, and how it ends if it runs."""

    after: frozenset[int]
    when: str
    outcome: str


@st.composite
def graphs(draw: st.DrawFn) -> list[Drawn]:
    """Each node comes after those that it waits for."""
    found: list[Drawn] = []
    for place in range(draw(st.integers(1, MAX_NODES))):
        after = draw(st.frozensets(st.integers(0, place - 1), max_size=3)) if place else frozenset()
        when = draw(st.sampled_from(["completed", "completed", "dead", "ended"])) if after else "completed"
        found.append(Drawn(after, when, draw(st.sampled_from(["completed", "completed", "dead", "cancelled"]))))
    return found


def expected(nodes: list[Drawn]) -> list[str]:
    """How each node ends, by the table in docs/guides/flows.md."""
    ends: list[str] = []
    for node in nodes:
        above = {ends[place] for place in node.after}
        is_lost = bool(above.intersection(LOST))
        if node.when == "completed":
            # Which of the two comes first decides, and that is not told.
            assume(not (is_lost and "skipped" in above))
            ends.append("cancelled" if is_lost else "skipped" if "skipped" in above else node.outcome)
        elif node.when == "dead":
            ends.append(node.outcome if is_lost else "skipped")
        else:
            ends.append(node.outcome)
    return ends


def can_be(nodes: list[Drawn]) -> bool:
    """Whether no node waits for the completion of another and for its loss: such graphs are refused."""
    needs: list[tuple[set[int], set[int]]] = []
    for node in nodes:
        completed, lost = set[int](), set[int]()
        if node.when == "completed":
            for place in node.after:
                completed |= {place} | needs[place][0]
                lost |= needs[place][1]
        elif node.when == "dead" and len(node.after) == 1:
            lost |= node.after
        if completed & lost:
            return False
        needs.append((completed, lost))
    return True


class Walk:
    """One graph in an app of its own."""

    def __init__(self, nodes: list[Drawn]) -> None:
        self.app = App.testing()
        self.ran: list[int] = []
        self.heals = False

        @self.app.task(max_attempts=1)
        def step(place: int, outcome: str) -> None:
            self.ran.append(place)
            if outcome == "dead" and not self.heals:
                raise Dead("hopeless")
            if outcome == "cancelled" and not self.heals:
                raise Cancel("not needed")

        with self.app.flow("flow") as flow:
            made: list[Any] = []
            for place, node in enumerate(nodes):
                after = [made[each] for each in sorted(node.after)]
                when: Any = node.when
                made.append(flow.add(step.job(place, node.outcome), name=str(place), after=after, when=when))

    def settle(self) -> list[str]:
        """Run to the end; how each node ended."""
        run_all(self.app, until=120)
        tree = self.app.flows.tree("flow")
        return ["skipped" if node.skipped else str(node.status) for node in tree.nodes]


@settings(max_examples=60)
@given(graphs())
def test_a_graph_agrees_with_the_reference_and_a_retry_completes_what_was_lost(nodes: list[Drawn]) -> None:
    assume(can_be(nodes))
    ends = expected(nodes)
    walk = Walk(nodes)
    try:
        assert walk.settle() == ends
        assert len(walk.ran) == len(set(walk.ran)), "a node ran twice"
        flow = walk.app.flows.get("flow")
        is_lost = any(end in LOST for end in ends)
        assert flow.status is (Status.CANCELLED if is_lost else Status.COMPLETED)
        assert [flow.completed, flow.dead, flow.cancelled, flow.skipped] == [
            ends.count(end) for end in ("completed", "dead", "cancelled", "skipped")
        ]
        walk.heals = True
        walk.ran.clear()
        walk.app.flows.retry("flow")
        assert walk.settle() == ["completed" if end in LOST else end for end in ends]
        assert sorted(walk.ran) == [place for place, end in enumerate(ends) if end in LOST]
        assert walk.app.flows.get("flow").status is Status.COMPLETED
    finally:
        walk.app.close()
