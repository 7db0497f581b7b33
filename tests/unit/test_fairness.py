"""Fairness: shares by weight over time, new tenants at once, no credit for idle time."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.flow.fairness import FairState, after_claim, next_tenants

weights_of_some = st.dictionaries(
    st.sampled_from("abcdefgh"), st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0, 10.0]), min_size=1
)


def claimed(
    state: FairState, waiting: list[str], weights: dict[str, float], jobs: int
) -> tuple[FairState, Counter[str]]:
    """One claim in which every tenant has enough."""
    taken = Counter(next_tenants(state, waiting, weights, jobs))
    return after_claim(state, taken, weights, waiting), taken


def shares(state: FairState, waiting: list[str], weights: dict[str, float], jobs: int) -> dict[str, int]:
    """How many of the next jobs each tenant gets."""
    return dict(Counter(next_tenants(state, waiting, weights, jobs)))


@given(weights_of_some, st.lists(st.integers(1, 20), min_size=1, max_size=30))
def test_shares_are_by_weight_however_large_the_claims(weights: dict[str, float], claims: list[int]) -> None:
    state, total = FairState(), Counter[str]()
    for jobs in claims:
        state, taken = claimed(state, list(weights), weights, jobs)
        total += taken
    assert total.total() == sum(claims)
    for tenant, weight in weights.items():
        due = total.total() * weight / sum(weights.values())
        # Never more than one job ahead of its share, or than one of each tenant behind it.
        assert due - len(weights) - 1e-6 <= total[tenant] <= due + len(weights) + 1e-6


@given(st.integers(1, 30), st.lists(st.integers(1, 50), max_size=20))
def test_a_new_tenant_is_served_within_as_many_jobs_as_there_are_tenants(tenants: int, claims: list[int]) -> None:
    old = [f"t{i}" for i in range(tenants)]
    state = FairState()
    for jobs in claims:
        state, _ = claimed(state, old, {}, jobs)
    assert "new" in next_tenants(state, [*old, "new"], {}, tenants + 1)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.integers(1, 40))
def test_an_idle_tenant_saves_up_nothing(claims: list[int], jobs: int) -> None:
    state, _ = claimed(FairState(), ["a", "b"], {}, 10)
    for each in claims:
        state, _ = claimed(state, ["b"], {}, each)
    counts = shares(state, ["a", "b"], {}, 2 * jobs)
    assert abs(counts["a"] - counts["b"]) <= 2


@given(st.integers(1, 1000))
def test_a_tenant_that_was_alone_owes_nothing(jobs: int) -> None:
    state, _ = claimed(FairState(), ["a"], {}, jobs)
    assert shares(state, ["a", "b"], {}, 10) == {"a": 5, "b": 5}


@given(st.integers(1, 1000))
def test_a_backlog_that_is_gone_leaves_no_debt(jobs: int) -> None:
    state = after_claim(FairState(), {"a": jobs}, {}, ["a"])
    state = after_claim(state, {}, {}, [])
    assert shares(state, ["a", "b"], {}, 10) == {"a": 5, "b": 5}


def test_a_new_tenant_comes_first_among_equals() -> None:
    weights = {"z": 0.5}
    state = FairState(0.0, {"a": 1.0}, weights)
    assert next_tenants(state, ["a", "z"], weights, 1) == ["z"], "both would end at 2"


@pytest.mark.parametrize("before", [0.01, 1.0, 100.0])
def test_weights_that_change_hold_at_once(before: float) -> None:
    state, _ = claimed(FairState(), ["a", "b"], {"a": before}, 50)
    assert shares(state, ["a", "b"], {"a": 4.0}, 50) == {"a": 40, "b": 10}


def test_turns_alternate() -> None:
    order = next_tenants(FairState(), ["a", "b"], {"a": 3.0}, 8)
    assert [order[:4].count("a"), order[4:].count("a")] == [3, 3]


@given(st.lists(st.sampled_from("abcdef"), max_size=5), st.integers(0, 20))
def test_nothing_is_shared_out_where_no_job_waits_or_nothing_is_asked(waiting: list[str], jobs: int) -> None:
    assert len(next_tenants(FairState(), waiting, {}, jobs)) == (jobs if waiting else 0)


@given(st.lists(st.tuples(st.sets(st.sampled_from("abcdefgh")), st.integers(0, 9)), max_size=30))
def test_virtual_time_never_goes_back_and_tenants_at_the_present_are_not_remembered(
    rounds: list[tuple[set[str], int]],
) -> None:
    state = FairState()
    for waiting, jobs in rounds:
        after, _ = claimed(state, sorted(waiting), {}, jobs)
        assert after.present >= state.present
        assert all(end > after.present for end in after.ends.values())
        state = after
