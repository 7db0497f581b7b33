"""How often a waiter polls, and when it gives up."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.client.runtime.result_waiter import Wait, pause_after
from windlass.errors import StoreUnavailable

waits = st.floats(min_value=0, max_value=1e7)


@given(waits)
def test_a_waiter_with_hints_polls_rarely(seconds: float) -> None:
    assert 0.05 <= pause_after(seconds, signalled=True) <= 2


@given(waits)
def test_a_waiter_without_hints_is_late_by_an_eighth_or_a_second(seconds: float) -> None:
    assert 0.01 <= pause_after(seconds, signalled=False) <= max(0.01, min(seconds / 8, 1))


@given(waits, st.booleans())
def test_the_longer_one_waits_the_rarer_one_looks(seconds: float, signalled: bool) -> None:
    assert pause_after(seconds, signalled=signalled) <= pause_after(2 * seconds, signalled=signalled)


async def test_a_waiter_that_has_given_up_is_not_waiting_for_another_read() -> None:
    wait = Wait(0)
    wait.fail(StoreUnavailable("this store is closed"))
    wait.look_again()
    with pytest.raises(StoreUnavailable, match="is closed"):
        await asyncio.wait_for(wait.seen(), 1)
