"""A reboot of the machine: whatever was alive before it is dead, because worker and store share the machine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import LEASE, open_lease, running, worker_info
from tests.support.stores import STORES
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.records import Campaign


@pytest.fixture(params=sorted(name for name in STORES if name.startswith("sqlite")))
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """An empty one of each kind."""
    opened = STORES[request.param].open(tmp_path, clock)
    yield opened
    await opened.close()


async def test_a_reboot_ends_the_leadership(store: Store, clock: ManualClock) -> None:
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
