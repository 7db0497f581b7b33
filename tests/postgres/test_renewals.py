"""Renewals while another session has locks: those on other tables delay none, those on leases make no runner dead."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import LEASE, enqueue_one, open_lease, running, status_of
from windlass.core.moments import DAY
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import ProcessRole

ROWS = "SELECT FROM windlass.leases FOR UPDATE"


@pytest.fixture
async def supervisor(store: Store) -> AsyncIterator[Store]:
    opened = open_store(store.address, opener=ProcessRole.SUPERVISOR)
    yield opened
    await opened.close()


@pytest.mark.parametrize("mode", ["ACCESS EXCLUSIVE", "SHARE"])
@pytest.mark.parametrize(
    "table", ["jobs", "history", "idempotency_keys", "queues", "workers", "leadership", "watermarks"]
)
async def test_a_lock_on_another_table_delays_no_renewal(
    supervisor: Store, other: Other, table: str, mode: str
) -> None:
    await open_lease(supervisor)
    job = await enqueue_one(supervisor)
    await other.does(f"LOCK windlass.{table} IN {mode} MODE")
    # What else a supervisor does, on its other connection: here it waits.
    duties = asyncio.gather(
        supervisor.jobs.admit(10), supervisor.operator.cancel([job], "no"), supervisor.workers.unregister("w9")
    )
    async with asyncio.timeout(30):
        for _ in range(3):
            assert (await supervisor.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
    await other.commits()
    await duties


async def test_a_renewal_that_waited_does_not_shorten_a_grace(store: Store, clock: ManualClock, other: Other) -> None:
    job = await running(store)
    await open_lease(store, "r2", "w2")
    clock.advance(LEASE // 3)
    await other.does(ROWS)
    renewing = asyncio.create_task(store.leases.renew("w1", ["r1"], LEASE))
    await other.is_waited_for()
    clock.advance(2 * LEASE)
    await other.does("UPDATE windlass.leases SET expires_at = %s + length, graces = 1", clock.wall())
    await other.does("UPDATE windlass.lease_activity SET at = %s", clock.wall())
    await other.commits()
    assert (await renewing).kept == ("r1",)
    assert await store.leases.rescue(10) == []
    assert await status_of(store, job.id) is Status.RUNNING


async def test_a_grace_counts_from_when_it_could_be_written(store: Store, clock: ManualClock, other: Other) -> None:
    job = await running(store)
    clock.advance(DAY)
    await other.does(ROWS)
    rescuing = asyncio.create_task(store.leases.rescue(10))
    await other.is_waited_for()
    clock.advance(2 * LEASE)
    await other.commits()
    assert await rescuing == []
    assert await other.does("SELECT expires_at, graces FROM windlass.leases") == [(clock.wall() + LEASE, 1)]
    assert await store.leases.rescue(10) == []
    assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
    assert await status_of(store, job.id) is Status.RUNNING


async def test_lease_activity_stays_behind_while_nothing_can_renew(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await open_lease(store)
    clock.advance(LEASE // 3)
    (before,) = await other.does("SELECT at FROM windlass.lease_activity")
    await other.does(ROWS)
    renewing = asyncio.create_task(store.leases.renew("w1", ["r1"], LEASE))
    await other.is_waited_for()
    assert await other.does("SELECT at FROM windlass.lease_activity FOR UPDATE SKIP LOCKED") == [before]
    await other.commits()
    await renewing
    assert await other.does("SELECT at FROM windlass.lease_activity") == [(clock.wall(),)]
