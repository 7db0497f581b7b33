"""A reboot of the machine: whatever was alive before it is dead, because worker and store share the machine."""

from tests.support.clock import ManualClock
from tests.support.seed import LEASE, open_lease, running, worker_info
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.records import Campaign


async def test_a_reboot_frees_the_office(store: Store, clock: ManualClock) -> None:
    await store.leader.campaign(Campaign("a", 3600 * SECOND))
    clock.reboot()
    assert await store.leader.campaign(Campaign("b", SECOND)) is not None


async def test_a_reboot_loses_every_lease(store: Store, clock: ManualClock) -> None:
    await open_lease(store)
    clock.reboot()
    assert (await store.leases.renew("w1", ["r1"], LEASE)).lost == ("r1",)


async def test_a_reboot_voids_every_lease_at_once(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    clock.reboot()
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]


async def test_a_reboot_ends_every_worker(store: Store, clock: ManualClock) -> None:
    await store.workers.beat(worker_info())
    clock.reboot()
    assert await store.workers.list() == []
