"""Groups: ids that follow from the group's, and what the end of a member means for each callback."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.groups.ids import (
    MAX_MEMBERS,
    Role,
    added_id,
    before_added,
    before_member,
    callback_id,
    family,
    group_of,
    is_group_id,
    is_member_id,
    link_id,
    member_id,
    member_index,
    named_group_id,
    new_group_id,
    watcher_id,
)
from windlass.core.groups.need import allowed_losses, check_need, needed
from windlass.core.groups.rules import (
    MAX_POLL,
    MIN_POLL,
    MemberState,
    Verdict,
    member_ended_reason,
    member_in_reason,
    member_state,
    seconds_until_next_look,
    stored_within,
    verdict,
)
from windlass.core.ids import check_id, is_id, new_id
from windlass.core.moments import SECOND
from windlass.core.status import FINISHED, Status

names = st.text(min_size=1, max_size=20).map(named_group_id)
groups = names | st.builds(new_group_id)
indexes = st.integers(0, MAX_MEMBERS - 1)


@given(groups, indexes, indexes)
def test_members_sort_by_their_index(group: str, one: int, two: int) -> None:
    assert (member_id(group, one) < member_id(group, two)) == (one < two)


@given(groups, indexes)
def test_an_id_tells_the_index_of_a_member_and_only_in_its_own_group(group: str, index: int) -> None:
    id_ = member_id(group, index)
    assert check_id(id_) == id_
    assert member_index(group, id_) == index
    assert member_index(new_group_id(), id_) is None
    assert member_index(new_id(), id_) is None


@given(groups)
def test_ids_of_a_group_differ_and_callbacks_sort_after_members(group: str) -> None:
    others = {watcher_id(group, Role.ON_DEAD), watcher_id(group, Role.ALWAYS), *(callback_id(group, r) for r in Role)}
    assert len(others) == 5
    assert min(others) > member_id(group, MAX_MEMBERS - 1)
    assert all(is_id(each) and UUID(each).version == 8 for each in {*others, group})
    assert is_group_id(group)
    assert not any(is_group_id(each) for each in {*others, member_id(group, 0), new_id()})
    assert watcher_id(group, Role.THEN) == group
    assert all(member_index(group, each) is None for each in others)


@given(groups, indexes)
def test_a_list_that_begins_before_a_member_begins_with_it(group: str, index: int) -> None:
    before = before_member(group, index)
    assert before < member_id(group, index)
    assert index == 0 or before >= member_id(group, index - 1)


def test_a_name_is_always_the_same_group_and_another_name_another() -> None:
    assert named_group_id("import-7") == named_group_id("import-7") != named_group_id("import-8")


@pytest.mark.parametrize("status", Status)
def test_a_stored_member_counts_by_its_status(status: Status) -> None:
    expected = MemberState.COMPLETED if status is Status.COMPLETED else MemberState.LOST
    assert member_state(status, None, stored=False) is (expected if status in FINISHED else MemberState.LIVE)


@pytest.mark.parametrize(
    ("outcome", "stored", "state"),
    [
        ("completed", False, MemberState.COMPLETED),
        ("dead", False, MemberState.LOST),
        ("", False, MemberState.LOST),
        (None, False, MemberState.LIVE),
        (None, True, MemberState.LOST),
    ],
)
def test_a_member_that_is_not_stored_counts_by_its_tombstone(
    outcome: str | None, stored: bool, state: MemberState
) -> None:
    assert member_state(None, outcome, stored=stored) is state


def test_a_large_group_gets_more_time_to_be_stored() -> None:
    assert stored_within(0) == 60 * SECOND
    assert stored_within(1_000_000) > 1_800 * SECOND


@pytest.mark.parametrize(
    ("role", "ended", "lost", "expected"),
    [
        (Role.THEN, False, False, Verdict.WAIT),
        (Role.THEN, True, False, Verdict.RUN),
        (Role.THEN, False, True, Verdict.CANCEL),
        (Role.THEN, True, True, Verdict.CANCEL),
        (Role.ON_DEAD, False, False, Verdict.WAIT),
        (Role.ON_DEAD, True, False, Verdict.CANCEL),
        (Role.ON_DEAD, False, True, Verdict.RUN),
        (Role.ON_DEAD, True, True, Verdict.RUN),
        (Role.ALWAYS, False, False, Verdict.WAIT),
        (Role.ALWAYS, True, False, Verdict.RUN),
        (Role.ALWAYS, False, True, Verdict.WAIT),
        (Role.ALWAYS, True, True, Verdict.RUN),
    ],
)
def test_when_a_callback_runs(role: Role, ended: bool, lost: bool, expected: Verdict) -> None:
    assert verdict(role, ended=ended, lost=lost) is expected


def test_looks_become_rarer_but_never_rarer_than_the_limit() -> None:
    waits = [seconds_until_next_look(looks) for looks in range(1000)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (MIN_POLL, MAX_POLL)


@pytest.mark.parametrize("status", [Status.DEAD, Status.CANCELLED, None])
def test_the_reason_of_a_lost_group_names_the_member(status: Status | None) -> None:
    id_ = new_id()
    assert member_in_reason(member_ended_reason(id_, 7, status)) == id_
    assert member_in_reason("cancelled by an operator") is None
    assert member_in_reason("its member left the team") is None
    assert member_in_reason(None) is None


@pytest.mark.parametrize(
    ("need", "size", "expected"),
    [
        (None, 7, 7),
        (3, 7, 3),
        ("95%", 100, 95),
        ("95%", 101, 96),
        ("33.4%", 3, 2),
        ("0%", 7, 0),
        ("100%", 7, 7),
        ("50%", 0, 0),
        ("99.999999%", 1_000_000, 1_000_000),
    ],
)
def test_a_share_of_the_members_is_rounded_up(need: int | str | None, size: int, expected: int) -> None:
    assert needed(check_need(need, size), size) == expected
    assert allowed_losses(need, size) == size - expected


def test_what_may_be_lost_is_open_while_the_size_is_except_where_all_must_complete() -> None:
    assert (allowed_losses(None, None), allowed_losses(5, None), allowed_losses("5%", None)) == (0, None, None)


@given(groups, st.text(max_size=20), st.text(max_size=20))
def test_an_added_member_sorts_behind_the_others_and_before_the_callbacks(group: str, one: str, two: str) -> None:
    adder = member_id(group, 3)
    id_ = added_id(group, adder, one)
    assert check_id(id_) == id_
    assert before_added(group) < id_ < callback_id(group, Role.THEN)
    assert is_member_id(group, id_)
    assert member_index(group, id_) is None
    assert (added_id(group, adder, two) == id_) == (one == two)
    # Of groups of the same millisecond one in 256 has the same prefix for added members.
    assert not is_member_id(named_group_id(f"not {group}"), id_)


@given(groups, indexes)
def test_the_group_of_a_job_is_known_by_its_id(group: str, index: int) -> None:
    behind = link_id(f"{group}/{index}", 1)
    assert group_of(member_id(group, index), group, None) == group
    assert group_of(added_id(group, behind, "x"), group, group) == group
    assert group_of(behind, None, group) == group
    assert group_of(behind, None, new_id()) is None
    assert group_of(callback_id(group, Role.THEN), group, group) is None
    assert group_of(new_id(), group, group) is None


def test_the_family_of_an_id_is_that_of_its_group_and_other_jobs_have_none() -> None:
    one, two = new_group_id(), new_group_id()
    assert family(member_id(one, 0)) == family(member_id(one, 7)) != family(member_id(two, 0))
    assert family(added_id(one, member_id(one, 0), "a")) == family(added_id(one, member_id(one, 1), "b"))
    assert family(added_id(one, member_id(one, 0), "a")) != family(added_id(two, member_id(two, 0), "a"))
    assert family(one) == one
    assert family(link_id("seed", 1)) is not None
    assert family(callback_id(one, Role.THEN)) is None
    assert family(new_id()) is None
