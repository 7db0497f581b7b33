"""Chains, as core decides about them: whose turn it is, what is refused, and how results get into a payload."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.chain import (
    Source,
    Turn,
    called_off_by,
    check_links,
    due_after,
    parent_in,
    rebased,
    result_texts,
    turn_of,
    with_results,
)
from windlass.core.job import NewJob
from windlass.core.status import FINISHED, LIVE, Status
from windlass.errors import InvalidOption

A, B, C = (f"0198c000-0000-7000-8000-00000000000{n}" for n in range(3))
plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
json_values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3))


def job(id_: str, *parents: str, **fields: object) -> NewJob:
    return NewJob(id=id_, type="t", payload="{}", parents=parents, **fields)  # type: ignore[arg-type]


def test_only_a_completed_parent_lets_its_children_go_on() -> None:
    assert {status: turn_of(status) for status in FINISHED} == {
        Status.COMPLETED: Turn.GO_ON,
        Status.DEAD: Turn.CALL_OFF,
        Status.CANCELLED: Turn.CALL_OFF,
    }
    assert {turn_of(status) for status in LIVE} == {Turn.WAIT}


@pytest.mark.parametrize("status", [Status.DEAD, Status.CANCELLED])
def test_the_reason_of_a_child_names_the_parent_that_ended(status: Status) -> None:
    assert parent_in(called_off_by(A, status)) == A


@pytest.mark.parametrize(
    "reason", [None, "", "its parent is dead", f"its parent {A} is odd", f"my parent {A} is dead"]
)
def test_no_other_reason_is_taken_for_it(reason: str | None) -> None:
    assert parent_in(reason) is None


def test_a_delay_counts_from_the_end_of_the_parent_and_a_moment_stays() -> None:
    assert due_after(run_at=100, created_at=100, lag=0, now=500) == 500
    assert due_after(run_at=100, created_at=100, lag=60, now=500) == 560
    assert due_after(run_at=900, created_at=100, lag=0, now=500) == 900


def test_a_clock_that_is_set_back_after_the_hand_in_holds_no_child_up() -> None:
    assert due_after(run_at=900, created_at=900, lag=0, now=500) == 500
    assert due_after(run_at=900, created_at=900, lag=60, now=500) == 560


def test_a_child_of_a_job_that_another_stands_for_is_a_child_of_that_one() -> None:
    child = job(C, A, B, parent=A, takes=(("x", A), ("y", B)))
    found = rebased(child, {A: "other"})
    assert (found.parent, found.parents, found.takes) == ("other", ("other", B), (("x", "other"), ("y", B)))
    assert rebased(child, {C: "other"}) is child


def test_parents_must_be_known_or_come_before() -> None:
    check_links([job(B, A), job(C, B)], {A: Source(Status.RUNNING, "q")}, [])
    with pytest.raises(InvalidOption, match=f"no job {A}"):
        check_links([job(B, A)], {}, [])
    with pytest.raises(InvalidOption, match=f"no job {B}"):
        check_links([job(C, B), job(B, A)], {A: Source(Status.RUNNING, "q")}, [])


def test_only_the_result_of_a_parent_may_be_taken() -> None:
    with pytest.raises(InvalidOption, match=r"takes.x: .* not among the parents"):
        check_links([job(B, A, takes=(("x", C),))], {A: Source(Status.RUNNING, "q")}, [])


def test_a_queue_that_keeps_nothing_is_no_source_but_may_be_waited_for() -> None:
    sources = {A: Source(Status.RUNNING, "brief")}
    check_links([job(B, A)], sources, ["brief"])
    with pytest.raises(InvalidOption, match=r"takes.x: .*'brief'.*0 s"):
        check_links([job(B, A, takes=(("x", A),))], sources, ["brief"])


@given(st.dictionaries(st.text(), json_values, max_size=3), st.dictionaries(st.text(), json_values, max_size=3))
def test_results_are_put_into_a_payload_as_they_are(own: dict[str, object], results: dict[str, object]) -> None:
    texts = [(name, msgspec.json.encode(value).decode()) for name, value in results.items() if name not in own]
    merged = with_results(msgspec.json.encode(own).decode(), texts)
    assert msgspec.json.decode(merged) == {**results, **own}


def test_a_parameter_gets_the_result_of_its_own_parent() -> None:
    takes = msgspec.json.encode([("x", A), ("y", B), ("z", A)]).decode()
    inputs = msgspec.json.encode([(B, '"b"'), (A, None)]).decode()
    assert result_texts(takes, inputs) == {"x": (A, "null"), "y": (B, '"b"'), "z": (A, "null")}
