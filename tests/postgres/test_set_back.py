"""The server's clock is set back: no runner is taken for alive for so much longer."""

from tests.support.clock import ManualClock
from tests.support.seed import LEASE, open_lease, running, status_of
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Campaign

HOUR = 3600 * SECOND


async def test_the_dead_are_missed_after_one_lease(store: Store, clock: ManualClock) -> None:
    job = await running(store, "dead")
    await open_lease(store, "alive", "w2")
    clock.jump_wall(-HOUR)
    for _ in range(3):
        assert await status_of(store, job.id) is Status.RUNNING
        assert (await store.leases.renew("w2", ["alive"], LEASE)).kept == ("alive",)
        await store.leases.rescue(10)
        clock.advance(LEASE // 3)
    await store.leases.renew("w2", ["alive"], LEASE)
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]


async def test_the_leadership_of_a_dead_coordinator_is_free_soon(store: Store, clock: ManualClock) -> None:
    term = 10 * SECOND
    first = await store.leader.campaign(Campaign("dead", term))
    assert first is not None
    clock.jump_wall(-HOUR)
    await store.leases.renew("w", [], LEASE)
    second = await store.leader.campaign(Campaign("alive", term))
    assert second is not None
    assert second > first
    assert await store.leader.campaign(Campaign("another", term)) is None
