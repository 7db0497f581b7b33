"""The tables of retries in the guides: what runs again, and what stays, is the same on every store."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.client.test_failure_tables import GUIDES, rows_of
from windlass import App, Dead, NotAllowedNow, Status, group
from windlass.core.status import LIVE
from windlass.testing import run_all

ROLES = ("then", "on_dead", "always")


class Works:
    """An app with tasks that note what ran; those in `broken` die."""

    def __init__(self, app: App) -> None:
        self.app, self.broken = app, set[str]()
        self.ran: Counter[str] = Counter()

        @app.task
        def work(name: str) -> str:
            self.ran[name] += 1
            if name in self.broken:
                raise Dead("broken")
            return name

        self.work = work

    def settle(self) -> None:
        """Run what is due, also what looks by itself."""
        for _ in range(3):
            run_all(self.app)
            for job in self.app.jobs.list(status=["scheduled"]).items:
                if job.type.startswith("windlass."):
                    self.app.jobs.run_now(job.id)
        run_all(self.app)

    def group(self, *names: str, **options: Any) -> Any:
        """A group with all callbacks; members are called `late…` if they wait for an hour."""
        jobs = [self.work.using(delay=3600 if name.startswith("late") else 0).job(name) for name in names]
        callbacks: Any = {role: self.work.job(role) for role in ROLES}
        handle = group(jobs, **callbacks, **options).enqueue()
        self.settle()
        return handle


@pytest.fixture
def works(app: App) -> Works:
    return Works(app)


class Scene:
    """What the callbacks were before an action, just after it, and when all has run."""

    def __init__(self, works: Works, handle: Any, act: Callable[[], object]) -> None:
        self._works, self._handle = works, handle
        before, self.ran_before = self._statuses(), works.ran.copy()
        works.broken = set()
        act()
        between, ran_between = self._statuses(), works.ran.copy()
        works.settle()
        self.again = {name for name, times in works.ran.items() if times > self.ran_before[name]}
        self._moments = {role: (before[role], between[role], self._statuses()[role]) for role in ROLES}
        self._at_once = {name for name, times in ran_between.items() if times > self.ran_before[name]}

    def _statuses(self) -> dict[str, Status]:
        return {role: self._works.app.jobs.get(getattr(self._handle, role).id).status for role in ROLES}

    def shows(self, role: str, cell: str) -> bool:
        """Whether the callback did what the cell of the table says."""
        before, between, after = self._moments[role]
        match cell.split(",")[0].split(":")[0]:
            case "stays":
                return before is after and role not in self.again
            case "waits" | "waits again":
                return between in LIVE and role not in self._at_once
            case "runs again":
                return role in self.again and self._works.ran[role] == self.ran_before[role] + 1
            case "is cancelled":
                return after is Status.CANCELLED and role not in self.again
            case "runs after the last":
                return role not in self._at_once and self._works.ran[role] == 1
        raise AssertionError(f"no test knows what {cell!r} means")


def lost(works: Works, act: Callable[[Any], object]) -> Scene:
    works.broken = {"b"}
    handle = works.group("a", "b")
    return Scene(works, handle, lambda: act(handle))


def retry_of_a_lost_group(works: Works) -> tuple[Scene, set[str]]:
    return lost(works, works.app.flows.retry), {"b"}


def retry_of_a_completed_group(works: Works) -> tuple[Scene, set[str]]:
    works.broken = {"b", "then"}
    handle = works.group("a", "b", need=1)
    return Scene(works, handle, lambda: works.app.flows.retry(handle)), {"b"}


def retry_of_a_member_of_a_live_group(works: Works) -> tuple[Scene, set[str]]:
    handle = works.group("a", "late")
    return Scene(works, handle, lambda: works.app.jobs.retry(handle.member(0))), {"a"}


def retry_of_a_member_of_an_ended_group(works: Works) -> tuple[Scene, set[str]]:
    return lost(works, lambda handle: works.app.jobs.retry(handle.member(1))), {"b"}


def cancel(works: Works) -> tuple[Scene, set[str]]:
    handle = works.group("late 1", "late 2")
    return Scene(works, handle, lambda: works.app.flows.cancel(handle)), set()


GROUPS = {
    "`flows.retry` of a lost group": retry_of_a_lost_group,
    "`flows.retry` of a completed group": retry_of_a_completed_group,
    "`jobs.retry` of a member, the group is live": retry_of_a_member_of_a_live_group,
    "`jobs.retry` of a member, the group has ended": retry_of_a_member_of_an_ended_group,
    "`flows.cancel`": cancel,
    "`jobs.retry` of a callback": None,
}
"""The rows of the guide's table; each scene returns which members run again."""


def table_of_groups() -> dict[str, list[str]]:
    return rows_of((GUIDES / "groups.md").read_text(), "| members")


def test_the_table_of_retries_of_groups_has_the_rows_that_are_tried() -> None:
    assert [*table_of_groups()] == [*GROUPS]


@pytest.mark.parametrize("row", [row for row, scene in GROUPS.items() if scene])
def test_a_retry_or_cancel_of_a_group_does_what_the_table_says(works: Works, row: str) -> None:
    make = GROUPS[row]
    assert make is not None
    scene, members = make(works)
    _, *cells = table_of_groups()[row]
    assert {role: cell for role, cell in zip(ROLES, cells, strict=True) if not scene.shows(role, cell)} == {}
    assert scene.again - {*ROLES} == members


@pytest.mark.parametrize("role", ROLES)
def test_a_retry_of_a_callback_runs_it_again_and_no_member(works: Works, role: str) -> None:
    works.broken = set() if role == "then" else {"a"}
    handle = works.group("a")
    scene = Scene(works, handle, lambda: works.app.jobs.retry(getattr(handle, role)))
    members, *cells = table_of_groups()["`jobs.retry` of a callback"]
    assert members == "stay"
    assert scene.shows(role, cells[ROLES.index(role)])
    assert scene.again == {role}


NODES = {
    "a dead or cancelled node": ("pay", {"pay", "ship"}),
    "a completed node": ("good", {"good"}),
    "a skipped node": ("bonus", None),
    "the flow": (None, {"pay", "ship"}),
}
"""Which node of the scene is retried in each row of the table, and what runs then; None: it is refused."""


def test_the_table_of_retries_of_nodes_has_the_rows_that_are_tried() -> None:
    assert [*rows_of((GUIDES / "flows.md").read_text(), "retry of")] == [*NODES]


@pytest.mark.parametrize("row", NODES)
def test_a_retry_in_a_flow_does_what_the_table_says(works: Works, row: str) -> None:
    retried, expected = NODES[row]
    works.broken = {"pay"}
    with works.app.flow("order") as flow:
        pay = flow.add(works.work.job("pay"), name="pay")
        good = flow.add(works.work.job("good"), name="good")
        flow.add(works.work.job("ship"), name="ship", after=[pay])
        flow.add(works.work.job("refund"), name="refund", after=[pay], when="dead")
        flow.add(works.work.job("clean"), name="clean", after=[pay, good], when="ended")
        flow.add(works.work.job("bonus"), name="bonus", after=[good], when="dead")
    works.settle()
    before = works.ran.copy()
    assert before == Counter(["pay", "good", "refund", "clean"])
    works.broken = set()
    if expected is None:
        with pytest.raises(NotAllowedNow, match=r"it was skipped, because .* is completed"):
            works.app.jobs.retry(flow.handle.node(retried or ""))
        return
    works.app.flows.retry("order") if retried is None else works.app.jobs.retry(flow.handle.node(retried))
    works.settle()
    assert set(works.ran - before) == expected
    status = works.app.flows.get("order").status
    assert status is (Status.COMPLETED if retried is None else Status.CANCELLED)
