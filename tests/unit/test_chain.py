"""Chains, as core decides about them: whose turn it is, what is refused, and how results get into a payload."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.jobs.dependencies import (
    ParentEffect,
    ParentState,
    check_parents,
    due_after,
    effect_of,
    levels,
    parent_ended_reason,
    parent_in_reason,
    parent_results,
    with_existing_parents,
    with_results,
)
from windlass.core.jobs.job import NewJob
from windlass.core.status import FINISHED, LIVE, Status
from windlass.errors import InvalidOption

A, B, C = (f"0198c000-0000-7000-8000-00000000000{n}" for n in range(3))
plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
json_values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3))


def job(id_: str, *parents: str, **fields: object) -> NewJob:
    return NewJob(id=id_, type="t", payload="{}", parents=parents, **fields)  # type: ignore[arg-type]


def test_only_a_completed_parent_lets_its_children_go_on() -> None:
    assert {status: effect_of(status) for status in FINISHED} == {
        Status.COMPLETED: ParentEffect.RELEASE,
        Status.DEAD: ParentEffect.CANCEL,
        Status.CANCELLED: ParentEffect.CANCEL,
    }
    assert {effect_of(status) for status in LIVE} == {ParentEffect.WAIT}


@pytest.mark.parametrize("status", [Status.DEAD, Status.CANCELLED])
def test_the_reason_of_a_child_names_the_parent_that_ended(status: Status) -> None:
    assert parent_in_reason(parent_ended_reason(A, status)) == A


@pytest.mark.parametrize(
    "reason", [None, "", "its parent is dead", f"its parent {A} is odd", f"my parent {A} is dead"]
)
def test_no_other_reason_is_taken_for_it(reason: str | None) -> None:
    assert parent_in_reason(reason) is None


def test_a_delay_counts_from_the_end_of_the_parent_and_a_moment_stays() -> None:
    assert due_after(run_at=100, created_at=100, lag=0, now=500) == 500
    assert due_after(run_at=100, created_at=100, lag=60, now=500) == 560
    assert due_after(run_at=900, created_at=100, lag=0, now=500) == 900


def test_a_clock_that_is_set_back_after_the_enqueue_delays_no_child() -> None:
    assert due_after(run_at=900, created_at=900, lag=0, now=500) == 500
    assert due_after(run_at=900, created_at=900, lag=60, now=500) == 560


def test_a_child_of_a_job_whose_key_is_taken_becomes_a_child_of_the_existing_job() -> None:
    child = job(C, A, B, parent=A, result_params=(("x", A), ("y", B)))
    found = with_existing_parents(child, {A: "other"})
    assert (found.parent, found.parents, found.result_params) == ("other", ("other", B), (("x", "other"), ("y", B)))
    assert with_existing_parents(child, {C: "other"}) is child


def test_parents_must_be_known_or_come_before() -> None:
    check_parents([job(B, A), job(C, B)], {A: ParentState(Status.RUNNING, "q")}, [])
    with pytest.raises(InvalidOption, match=f"no job {A}"):
        check_parents([job(B, A)], {}, [])
    with pytest.raises(InvalidOption, match=f"no job {B}"):
        check_parents([job(C, B), job(B, A)], {A: ParentState(Status.RUNNING, "q")}, [])


def test_only_the_result_of_a_parent_may_be_taken() -> None:
    with pytest.raises(InvalidOption, match=r"result_params.x: .* not among the parents"):
        check_parents([job(B, A, result_params=(("x", C),))], {A: ParentState(Status.RUNNING, "q")}, [])


def test_a_queue_that_keeps_nothing_is_no_source_but_may_be_waited_for() -> None:
    sources = {A: ParentState(Status.RUNNING, "brief")}
    check_parents([job(B, A)], sources, ["brief"])
    with pytest.raises(InvalidOption, match=r"result_params.x: .*'brief'.*0 s"):
        check_parents([job(B, A, result_params=(("x", A),))], sources, ["brief"])


@given(st.dictionaries(st.text(), json_values, max_size=3), st.dictionaries(st.text(), json_values, max_size=3))
def test_results_are_put_into_a_payload_as_they_are(own: dict[str, object], results: dict[str, object]) -> None:
    texts = [(name, msgspec.json.encode(value).decode()) for name, value in results.items() if name not in own]
    merged = with_results(msgspec.json.encode(own).decode(), texts)
    assert msgspec.json.decode(merged) == {**results, **own}


def test_a_parameter_gets_the_result_of_its_own_parent() -> None:
    takes = msgspec.json.encode([("x", A), ("y", B), ("z", A)]).decode()
    inputs = msgspec.json.encode([(B, '"b"'), (A, None)]).decode()
    assert parent_results(takes, inputs) == {"x": (A, "null"), "y": (B, '"b"'), "z": (A, "null")}


def test_a_job_is_one_level_below_the_last_of_its_parents_in_the_batch() -> None:
    chain_and_join = [job(A), job(B, A), job(C, A, B), job("d", "in the store")]
    assert levels(chain_and_join) == {A: 1, B: 2, C: 3, "d": 1}
