"""The tables of failure rules: what the guides say is what each store does, row by row."""

from pathlib import Path
from typing import Any

import pytest

from windlass import App, Cancel, Dead, Fixed, Snooze, Status, group
from windlass.client.graphs.node import Node
from windlass.testing import run_all

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def rows_of(text: str, head: str) -> dict[str, list[str]]:
    """The cells of a table by its first column; the table is the one whose head begins so."""
    lines = iter(text.splitlines())
    next(line for line in lines if line.startswith(f"| {head}"))
    next(lines)
    found = {}
    for line in lines:
        if not line.startswith("|"):
            break
        first, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        found[first] = cells
    return found


class Works:
    """An app with a task that ends as its argument says."""

    def __init__(self, app: App) -> None:
        self.app = app

        @app.task(retry=Fixed(base=3600), max_attempts=3)
        def work(how: str) -> str:
            match how:
                case "dead":
                    raise Dead("hopeless")
                case "cancelled":
                    raise Cancel("not needed")
                case "failed":
                    raise OSError("later")
                case "snoozed":
                    raise Snooze(3600)
            return how

        @app.task
        def note() -> None: ...

        self.work, self.note = work, note

    def settle(self) -> None:
        """Everything that is due has run, and everything that watches has looked."""
        for _ in range(3):
            run_all(self.app)
            for job in self.app.jobs.list(status=["scheduled"]).items:
                if job.type.startswith("windlass."):
                    self.app.jobs.run_now(job.id)
        run_all(self.app)


@pytest.fixture
def works(app: App) -> Works:
    return Works(app)


MEMBERS = {
    "completed": ["completed"],
    "dead, cancelled, expired, or replaced by another job": ["dead", "cancelled"],
    "failed, and will be retried; crashed, snoozed, requeued": ["failed", "snoozed"],
    "dead because it crashed its workers": [],  # conformance/test_groups.py, e2e/test_groups.py
    "deleted, or dropped by its queue's retention": ["completed", "dead"],
    "another job, which has its idempotency key": ["completed", "dead", "failed"],
}
"""How a member of each row of the guide's table ends here."""
LIKE = {"completed": "completed", "failed": "failed, and will be retried; crashed, snoozed, requeued"}
AS_DEAD = "dead, cancelled, expired, or replaced by another job"


def test_the_table_of_members_has_the_rows_that_are_tried() -> None:
    assert [*rows_of((GUIDES / "groups.md").read_text(), "a member is")] == [*MEMBERS]


@pytest.mark.parametrize(("row", "how"), [(row, how) for row, ends in MEMBERS.items() for how in ends])
def test_the_end_of_a_member_means_what_the_table_says(works: Works, row: str, how: str) -> None:
    table = rows_of((GUIDES / "groups.md").read_text(), "a member is")
    cells = table[row]
    if cells[0].startswith("as "):
        assert len(set(cells)) == 1
        cells = table[LIKE.get(how, AS_DEAD)]
    first = works.work.job(how)
    if "key" in row:
        works.work.using(idempotency_key="k").enqueue(how)
        first = works.work.using(idempotency_key="k").job(how)
    last = works.work.using(delay=3600).job("completed")
    note = works.note.job
    handle = group([first, last], then=note(), on_dead=note(), always=note()).enqueue()
    run_all(works.app)
    if row.startswith("deleted"):
        works.app.jobs.delete(handle.member(0))
    works.settle()
    before = _statuses(works, handle)
    works.app.jobs.run_now(handle.member(1))
    works.settle()
    after = _statuses(works, handle)
    assert [_reported(*each) for each in zip(before, after, strict=True)] == cells


def _statuses(works: Works, handle: Any) -> list[Status]:
    return [works.app.jobs.get(each.id).status for each in (handle.then, handle.on_dead, handle.always)]


def _reported(before: Status, after: Status) -> str:
    """What became of a callback, in the words of the table: with a live member, and when all but one have ended."""
    if before is Status.COMPLETED:
        return "runs"
    if before is Status.CANCELLED:
        return "is cancelled"
    found = {Status.COMPLETED: "runs after the last", Status.CANCELLED: "is cancelled after the last"}
    return found.get(after, "waits")


NODES = {
    "completed": ["completed"],
    "dead, also by crashes": ["dead"],
    "cancelled, expired, replaced": ["cancelled"],
    "skipped: its own condition cannot be met": ["skipped"],
    "failed, crashed, snoozed, requeued": ["failed", "snoozed"],
    "deleted or pruned, was completed": ["completed"],
    "deleted or pruned, was dead": ["dead"],
    "deleted or pruned, was cancelled": ["cancelled"],
}
"""How a node of each row of the guide's table of nodes ends here."""
GRAPH = {"as completed": "completed", "as dead": "dead, also by crashes"}


def test_the_table_of_nodes_has_the_rows_that_are_tried() -> None:
    assert [*rows_of((GUIDES / "flows.md").read_text(), "a node is")] == [*NODES]


@pytest.mark.parametrize(("row", "how"), [(row, how) for row, ends in NODES.items() for how in ends])
def test_the_end_of_a_node_means_what_the_table_says(works: Works, row: str, how: str) -> None:
    table = rows_of((GUIDES / "flows.md").read_text(), "a node is")
    cells = [table[GRAPH[cell]][place] if cell in GRAPH else cell for place, cell in enumerate(table[row])]
    with works.app.flow("flow") as flow:
        first = _ending(works, flow, how)
        last = flow.add(works.work.using(delay=3600).job("completed"), name="last")
        below = [
            flow.add(works.note.job(), name=when, after=[first, last], when=when)
            for when in ("completed", "dead", "ended")
        ]
    run_all(works.app)
    if row.startswith("deleted"):
        works.app.jobs.delete(first.id)
    works.settle()
    before = _nodes(works)
    works.app.jobs.run_now(last.id)
    works.settle()
    after = _nodes(works)
    reported = [_node_reported(before[node.name], after[node.name]) for node in below]
    assert [*reported, _flow_reported(works.app.flows.get("flow").status)] == [_plain(cell) for cell in cells]


def _ending(works: Works, flow: Any, how: str) -> Node[Any]:
    if how != "skipped":
        node: Node[Any] = flow.add(works.work.job(how), name="first")
        return node
    good = flow.add(works.work.job("completed"), name="good")
    skipped: Node[Any] = flow.add(works.work.job("completed"), name="first", after=[good], when="dead")
    return skipped


def _nodes(works: Works) -> dict[str, str]:
    return {node.name: "skipped" if node.skipped else str(node.status) for node in works.app.flows.tree("flow").nodes}


def _node_reported(before: str, after: str) -> str:
    found = {"completed": "run", "cancelled": "cancelled", "skipped": "skipped"}
    if before in found:
        return found[before]
    return f"{found[after]} after the last" if after in found else "wait"


def _flow_reported(status: Status) -> str:
    return {Status.COMPLETED: "completes", Status.CANCELLED: "is cancelled"}.get(status, "waits")


def _plain(cell: str) -> str:
    """The flow always ends after the last."""
    return cell.removesuffix(" after the last") if cell.startswith(("completes", "is cancelled")) else cell
