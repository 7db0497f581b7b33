"""Groups in histories made by hand: those in which every callback waits for its members pass, others do not."""

from collections.abc import Callable

import pytest

from tests.torture.test_checker import Tale
from windlass.core.groups.ids import GROUP_TYPE, Role, callback_id, member_id, named_group_id
from windlass.core.groups.rules import member_ended_reason
from windlass.core.status import Status

GROUP = named_group_id("g")
FIRST, SECOND = member_id(GROUP, 0), member_id(GROUP, 1)
THEN, ALWAYS = callback_id(GROUP, Role.THEN), callback_id(GROUP, Role.ALWAYS)


class Groups(Tale):
    """A group of two members with two callbacks."""

    def __init__(self) -> None:
        super().__init__()
        for job in (GROUP, FIRST, SECOND):
            self.enqueue(job)
        self.keep(GROUP, type=GROUP_TYPE, status="scheduled", payload={"group": GROUP, "size": 2})
        for job in (THEN, ALWAYS):
            self.enqueue(job)
            self.keep(job, status="blocked")

    def lose(self, job: str) -> None:
        self.claim(job)
        self.start(job)
        self.end(job, outcome="Raised")
        self.settle(job, status="dead")
        self.keep(job, failures=1)

    def look(self, status: str = "completed", reason: str | None = None) -> None:
        """The group looks, and ends."""
        self.claim(GROUP)
        self.start(GROUP)
        self.end(GROUP)
        self.settle(GROUP, status=status)
        self.keep(GROUP, reason=reason)

    def lost(self, member: str = SECOND) -> None:
        self.look("cancelled", member_ended_reason(member, 1, Status.DEAD))
        self.keep(THEN, status="cancelled")


def all_complete(groups: Groups) -> None:
    groups.run(FIRST)
    groups.run(SECOND)
    groups.look()
    groups.run(THEN)
    groups.run(ALWAYS)


def enough_complete(groups: Groups) -> None:
    groups.keep(GROUP, payload={"group": GROUP, "size": 2, "need": "50%"})
    groups.lose(SECOND)
    groups.run(FIRST)
    groups.look()
    groups.run(THEN)
    groups.run(ALWAYS)


def one_is_lost(groups: Groups) -> None:
    groups.lose(SECOND)
    groups.lost()
    groups.run(FIRST)
    groups.run(ALWAYS)


def one_is_lost_and_retried_too_late(groups: Groups) -> None:
    one_is_lost(groups)
    groups.call("retry", {"jobs": [SECOND]}, {"done": [True]})
    groups.run(SECOND, 2)


def an_operator_cancels_the_group(groups: Groups) -> None:
    groups.keep(GROUP, status="cancelled", reason="cancelled by an operator")
    groups.keep(THEN, status="cancelled")
    groups.run(FIRST)
    groups.run(SECOND)
    groups.run(ALWAYS)


# Bad ones.


def then_runs_before_the_last_member(groups: Groups) -> None:
    groups.run(FIRST)
    groups.look()
    groups.run(THEN)
    groups.run(SECOND)
    groups.run(ALWAYS)


def then_runs_although_a_member_died(groups: Groups) -> None:
    groups.run(FIRST)
    groups.lose(SECOND)
    groups.look()
    groups.run(THEN)
    groups.run(ALWAYS)


def always_runs_before_the_last_member(groups: Groups) -> None:
    groups.run(ALWAYS)
    groups.run(FIRST)
    groups.run(SECOND)
    groups.look()
    groups.run(THEN)


def the_group_waits_in_vain(groups: Groups) -> None:
    groups.run(FIRST)
    groups.run(SECOND)
    groups.keep(ALWAYS, status="cancelled")


def then_waits_in_vain(groups: Groups) -> None:
    groups.run(FIRST)
    groups.run(SECOND)
    groups.look()
    groups.run(ALWAYS)


def too_few_complete(groups: Groups) -> None:
    groups.keep(GROUP, payload={"group": GROUP, "size": 2, "need": 1})
    groups.lose(FIRST)
    groups.lose(SECOND)
    groups.look()
    groups.run(THEN)
    groups.run(ALWAYS)


def then_runs_with_enough_before_the_last_member(groups: Groups) -> None:
    groups.keep(GROUP, payload={"group": GROUP, "size": 2, "need": 1})
    groups.run(FIRST)
    groups.look()
    groups.run(THEN)
    groups.run(SECOND)
    groups.run(ALWAYS)


def the_group_is_lost_without_a_loss(groups: Groups) -> None:
    groups.run(FIRST)
    groups.run(SECOND)
    groups.lost()
    groups.run(ALWAYS)


GOOD = [all_complete, enough_complete, one_is_lost, one_is_lost_and_retried_too_late, an_operator_cancels_the_group]
BAD = [
    then_runs_before_the_last_member,
    then_runs_although_a_member_died,
    always_runs_before_the_last_member,
    the_group_waits_in_vain,
    then_waits_in_vain,
    too_few_complete,
    then_runs_with_enough_before_the_last_member,
    the_group_is_lost_without_a_loss,
]


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.__name__)
def test_a_group_in_its_order_passes(good: Callable[[Groups], None]) -> None:
    groups = Groups()
    good(groups)
    report = groups.judge()
    assert "I20" not in report.laws, str(report)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
def test_a_group_out_of_order_is_caught(bad: Callable[[Groups], None]) -> None:
    groups = Groups()
    bad(groups)
    report = groups.judge()
    assert "I20" in report.laws, str(report)
