"""Leadership: one holder at a time, and a term that only grows."""

import asyncio

from tests.support.clock import ManualClock
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.records import Campaign

TERM = 10 * SECOND


async def test_free_leadership_is_taken_and_kept(store: Store, clock: ManualClock) -> None:
    first = await store.leader.campaign(Campaign("a", TERM))
    assert first is not None
    clock.advance(TERM - 1)
    assert await store.leader.campaign(Campaign("a", TERM)) == first
    clock.advance(TERM - 1)
    assert await store.leader.campaign(Campaign("a", TERM)) == first


async def test_held_leadership_is_not_given_to_another(store: Store, clock: ManualClock) -> None:
    await store.leader.campaign(Campaign("a", TERM))
    clock.advance(TERM - 1)
    assert await store.leader.campaign(Campaign("b", TERM)) is None


async def test_leadership_that_lapsed_goes_to_the_next_candidate_under_a_larger_term(
    store: Store, clock: ManualClock
) -> None:
    first = await store.leader.campaign(Campaign("a", TERM))
    clock.advance(TERM)
    second = await store.leader.campaign(Campaign("b", TERM))
    assert first is not None
    assert second is not None
    assert second > first
    assert await store.leader.campaign(Campaign("a", TERM)) is None


async def test_a_holder_that_lapsed_comes_back_under_a_larger_term(store: Store, clock: ManualClock) -> None:
    first = await store.leader.campaign(Campaign("a", TERM))
    clock.advance(TERM)
    second = await store.leader.campaign(Campaign("a", TERM))
    assert first is not None
    assert second is not None
    assert second > first


async def test_leadership_that_was_given_up_is_free_and_the_term_grows(store: Store) -> None:
    first = await store.leader.campaign(Campaign("a", TERM))
    await store.leader.resign("a")
    second = await store.leader.campaign(Campaign("b", TERM))
    assert first is not None
    assert second is not None
    assert second > first


async def test_no_process_resigns_the_leadership_of_another(store: Store) -> None:
    await store.leader.campaign(Campaign("a", TERM))
    await store.leader.resign("b")
    assert await store.leader.campaign(Campaign("b", TERM)) is None


async def test_of_many_at_once_one_wins(store: Store) -> None:
    answers = await asyncio.gather(*(store.leader.campaign(Campaign(f"c{n}", TERM)) for n in range(10)))
    assert sum(answer is not None for answer in answers) == 1


async def test_the_present_coordinator_is_known_until_its_term_is_over(store: Store, clock: ManualClock) -> None:
    assert await store.leader.current() is None
    await store.leader.campaign(Campaign("a", TERM))
    clock.advance(TERM - 1)
    assert await store.leader.current() == "a"
    clock.advance(1)
    assert await store.leader.current() is None


async def test_no_coordinator_is_named_after_it_resigned(store: Store) -> None:
    await store.leader.campaign(Campaign("a", TERM))
    await store.leader.resign("a")
    assert await store.leader.current() is None
