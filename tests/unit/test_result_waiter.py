"""How often a waiter polls."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.client.runtime.result_waiter import pause_after

waits = st.floats(min_value=0, max_value=1e7)


@given(waits)
def test_a_waiter_with_hints_polls_rarely(seconds: float) -> None:
    assert 0.05 <= pause_after(seconds, told=True) <= 2


@given(waits)
def test_a_waiter_without_hints_is_late_by_an_eighth_or_a_second(seconds: float) -> None:
    assert 0.01 <= pause_after(seconds, told=False) <= max(0.01, min(seconds / 8, 1))


@given(waits, st.booleans())
def test_the_longer_one_waits_the_rarer_one_looks(seconds: float, told: bool) -> None:
    assert pause_after(seconds, told=told) <= pause_after(2 * seconds, told=told)
