"""A store that goes away again and again, and is back for moments in which rescuers come before any renewal."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import LEASE, let_lapse, open_lease, running, status_of
from windlass.core.grace import MAX_GRACES
from windlass.core.moments import SECOND, Micros
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Campaign

AWAY = LEASE + SECOND
LOOK: Micros = SECOND // 2
"""How often a coordinator looks for lapsed leases while the store is well."""


async def flap(store: Store, clock: ManualClock, times: int) -> None:
    """No lease is renewed while the store is back, and a coordinator looks."""
    for _ in range(times):
        clock.advance(AWAY)
        assert await store.leases.rescue(10) == []
        clock.advance(SECOND // 10)
        assert await store.leases.rescue(10) == []


async def rescued_after(store: Store, clock: ManualClock, job: str) -> Micros:
    """How long it takes while the store is well."""
    began = clock.since_boot()
    while await status_of(store, job) is Status.RUNNING:
        assert clock.since_boot() < began + 3 * LEASE
        clock.advance(LOOK)
        await store.leases.rescue(10)
    return clock.since_boot() - began


async def test_a_runner_keeps_its_jobs_until_its_renewal_gets_through(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    for _ in range(2):
        await flap(store, clock, MAX_GRACES)
        assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
    assert await status_of(store, job.id) is Status.RUNNING


async def test_a_lease_gets_no_more_graces_than_the_limit(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    await flap(store, clock, MAX_GRACES)
    clock.advance(AWAY)
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]


@pytest.mark.parametrize("times", [1, 3, MAX_GRACES])
async def test_a_dead_runner_is_rescued_soon_after_the_store_is_well_again(
    store: Store, clock: ManualClock, times: int
) -> None:
    job = await running(store)
    await flap(store, clock, times)
    assert await rescued_after(store, clock, job.id) <= LEASE + LOOK


async def test_renewals_of_others_give_a_dead_runner_no_more_than_the_limit(store: Store, clock: ManualClock) -> None:
    job = await running(store, "dead")
    await open_lease(store, "alive", "w2")
    for _ in range(MAX_GRACES):
        clock.advance(AWAY)
        assert (await store.leases.renew("w2", ["alive"], LEASE)).kept == ("alive",)
        assert await store.leases.rescue(10) == []
    clock.advance(AWAY)
    assert (await store.leases.renew("w2", ["alive"], LEASE)).kept == ("alive",)
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]


async def test_a_look_before_the_lease_is_over_does_not_hide_an_outage(store: Store, clock: ManualClock) -> None:
    """Away for most of a grace, back for one look, and away beyond its end."""
    job = await running(store)
    await flap(store, clock, 1)
    clock.advance(LEASE * 3 // 4)
    assert await store.leases.rescue(10) == []
    clock.advance(LEASE // 3)
    assert await store.leases.rescue(10) == []
    assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
    assert await status_of(store, job.id) is Status.RUNNING


async def test_short_gaps_between_looks_are_no_outage(store: Store, clock: ManualClock) -> None:
    """A short lease, of which half is less than a look takes on a busy machine."""
    await running(store, "other")
    await open_lease(store, "r1", length=SECOND)
    clock.advance(AWAY)
    assert await store.leases.rescue(10) == []
    for _ in range(2):
        clock.advance(SECOND * 9 // 10)
        await store.leases.rescue(10)
    assert (await store.leases.renew("w1", ["r1"], SECOND)).lost == ("r1",)


async def test_campaigns_after_silences_keep_no_runner_alive_for_ever(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    for _ in range(MAX_GRACES):
        clock.advance(AWAY)
        await store.leader.campaign(Campaign("w2", LEASE))
        assert await store.leases.rescue(10) == []
    clock.advance(AWAY)
    await store.leader.campaign(Campaign("w2", LEASE))
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]


async def test_a_store_that_answers_while_no_lease_is_renewed_is_not_away(store: Store, clock: ManualClock) -> None:
    """One grace, because renewals may have failed; no second, because the call that looks was answered."""
    job = await running(store)
    assert await rescued_after(store, clock, job.id) <= 2 * LEASE + 2 * LOOK


async def test_a_runner_that_is_seen_to_be_dead_is_rescued_at_once_after_a_grace(
    store: Store, clock: ManualClock
) -> None:
    job = await running(store)
    await flap(store, clock, 2)
    await let_lapse(store, clock)
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]
