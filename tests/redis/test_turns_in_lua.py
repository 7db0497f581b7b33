"""Turns of tenants are reckoned in a script just as in core."""

from hypothesis import given
from hypothesis import strategies as st

from tests.redis.lua import run
from windlass.core.flow.fairness import MAX_WEIGHT, MIN_WEIGHT, FairState, after_claim, next_tenants

names = st.sampled_from(["", "a", "b", "B", "é", "z", "ab", "\U0001f600", "\uffff"])
ends = st.floats(0, 1000, allow_nan=False)
weighing = st.dictionaries(names, st.floats(MIN_WEIGHT, MAX_WEIGHT), max_size=5)
standings = st.builds(
    lambda present, later: FairState(present, {name: present + more for name, more in later.items() if more > 0}),
    ends,
    st.dictionaries(names, st.sampled_from([0.5, 1.0, 1.5, 2.0, 1 / 3, 100.0]), max_size=6),
)

TURNS = """
--! uses: fair_turns
local state, waiting, weights, jobs, taken, by_name = unpack(given, 1, 6)
local after = after_taking(state, taken, weights, waiting)
return cmsgpack.pack({fair_order(state, waiting, weights, jobs, by_name), after.present, after.ends})
"""


@given(standings, st.sets(names), weighing, st.integers(0, 40), st.dictionaries(names, st.integers(1, 50)))
def test_turns_are_those_of_core(
    state: FairState, waiting: set[str], weights: dict[str, float], jobs: int, taken: dict[str, int]
) -> None:
    order, present, after = run(
        TURNS,
        {"present": state.present, "ends": state.ends},
        dict.fromkeys(waiting, 1),
        weights,
        jobs,
        taken,
        {name: number for number, name in enumerate(sorted(waiting, key=str.encode))},
    )
    state.weights = weights
    meant = after_claim(state, taken, weights, waiting)
    assert order == next_tenants(state, waiting, weights, jobs)
    assert (present, after or {}) == (meant.present, meant.ends)
