"""Lease activity: one row that every renewal reads. No renewal waits for it unless leases may need a grace."""

import asyncio

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import LEASE, open_lease
from windlass.core.moments import SECOND
from windlass.store.contract import Store

LOCK = "SELECT at FROM windlass.lease_activity FOR UPDATE"


async def test_a_renewal_does_not_wait_for_another(store: Store, clock: ManualClock, other: Other) -> None:
    runner = await open_lease(store)
    clock.advance(2 * SECOND)  # the pulse is old enough to be written again
    await other.does(LOCK)
    async with asyncio.timeout(10):
        renewal = await store.leases.renew("w1", [runner], LEASE)
    assert renewal.kept == (runner,)
    await other.commits()


async def test_after_a_long_silence_it_waits_for_the_grant(store: Store, clock: ManualClock, other: Other) -> None:
    runner = await open_lease(store)
    clock.advance(LEASE + SECOND)
    await other.does(LOCK)
    renewing = asyncio.create_task(store.leases.renew("w1", [runner], LEASE))
    async with asyncio.timeout(10):
        await other.is_waited_for()
    assert not renewing.done()
    await other.commits()
    assert (await renewing).kept == (runner,)
