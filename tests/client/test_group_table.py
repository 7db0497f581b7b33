"""The table of groups in the guide: what becomes of each callback by the state of the group, on every store."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.client.test_failure_tables import GUIDES, Works, _reported, rows_of
from windlass import App, Status, group
from windlass.core.graphs.ids import map_id
from windlass.core.groups.ids import Role, callback_id, named_group_id


@pytest.fixture
def works(app: App) -> Works:
    return Works(app)


Statuses = list[Status]


def statuses(works: Works, group_: str) -> Statuses:
    return [works.app.jobs.get(callback_id(group_, role)).status for role in Role]


def callbacks(works: Works) -> Any:
    return {role.name.lower(): works.note.job() for role in Role}


def listed(works: Works, *ends: str, act: Callable[[Any], object] | None = None, **options: Any) -> list[Statuses]:
    """With a live member, and when that has ended too."""
    last = works.work.using(delay=3600).job("completed")
    handle = group([*map(works.work.job, ends), last], **callbacks(works), **options).enqueue()
    works.settle()
    if act is not None:
        act(handle)
    before = statuses(works, handle.id)
    if act is None:
        works.app.jobs.run_now(handle.member(len(ends)))
    works.settle()
    return [before, statuses(works, handle.id)]


def opened(works: Works, **options: Any) -> list[Statuses]:
    """An open group that has lost a member, twice."""
    block = works.app.group("open", **callbacks(works), **options)
    block.add(works.work.job("dead"))
    works.settle()
    return [statuses(works, block.id)] * 2


def skipped(works: Works) -> list[Statuses]:
    with works.app.flow("flow") as flow:
        first = flow.add(works.work.job("completed"))
        flow.add(group([works.note.job()], **callbacks(works)), after=[first], when="dead")
    works.settle()
    return [statuses(works, map_id(named_group_id("flow"), 1))] * 2


ROWS: dict[str, Callable[[Works], list[Statuses]] | None] = {
    "has lost more members than `need` allows": lambda works: listed(works, "dead", "completed", need=3),
    "has lost no more, and all have ended": lambda works: listed(works, "dead", "completed", need=2),
    "is open, all must complete, and one is lost": opened,
    "is open, and some may fail": lambda works: opened(works, need="50%"),
    "has used up its time (`within`) before `need` is met": None,  # test_group_rules.py, with a clock
    "is abandoned: open, and nothing was added for an hour": None,  # test_open_groups.py
    "is cancelled": lambda works: listed(works, act=works.app.flows.cancel),
    "is skipped, as a node of a graph": skipped,
}
AFTER_THE_LAST = {"runs": "runs after the last", "is cancelled": "is cancelled after the last"}
"""A row about a group whose members have all ended says it shorter."""


def table() -> dict[str, list[str]]:
    return rows_of((GUIDES / "groups.md").read_text(), "the group")


def test_the_table_of_groups_has_the_rows_that_are_tried() -> None:
    assert [*table()] == [*ROWS]


@pytest.mark.parametrize("row", [row for row, scene in ROWS.items() if scene])
def test_the_state_of_a_group_means_what_the_table_says(works: Works, row: str) -> None:
    scene = ROWS[row]
    assert scene is not None
    cells = table()[row]
    if "all have ended" in row:
        cells = [AFTER_THE_LAST[cell] for cell in cells]
    assert [_reported(*each) for each in zip(*scene(works), strict=True)] == cells
