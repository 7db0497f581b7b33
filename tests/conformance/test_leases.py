"""Leases: one per runner; what has lapsed is never renewed."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import LEASE, claim_ids, enqueue_one, let_lapse, look, open_lease, request, running
from windlass.core.moments import to_datetime
from windlass.errors import LeaseLost
from windlass.store.contract import Store
from windlass.store.records import CancelRequest, Renewal, RunnerEnd


async def test_an_open_lease_lets_its_runner_claim(store: Store) -> None:
    id_ = await enqueue_one(store)
    await open_lease(store)
    assert await claim_ids(store) == [id_]


async def test_a_renewal_extends_the_lease_from_now(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    clock.advance(LEASE // 3)
    assert await store.leases.renew("w1", ["r1"], LEASE) == Renewal(("r1",), ())
    assert (await look(store, job.id)).lease_expires_at == to_datetime(clock.wall() + LEASE)


async def test_a_lapsed_lease_is_lost_and_never_renewed(store: Store, clock: ManualClock) -> None:
    await open_lease(store)
    await let_lapse(store, clock)
    assert await store.leases.renew("w1", ["r1"], LEASE) == Renewal((), ("r1",))
    assert await store.leases.renew("w1", ["r1"], LEASE) == Renewal((), ("r1",))
    assert await store.jobs.claim(request()) == []
    await store.leases.rescue(10)
    with pytest.raises(LeaseLost):
        await store.jobs.claim(request())


async def test_opening_a_lapsed_lease_again_does_not_bring_it_back(store: Store, clock: ManualClock) -> None:
    await open_lease(store)
    await let_lapse(store, clock)
    await open_lease(store)
    assert (await store.leases.renew("w1", ["r1"], LEASE)).lost == ("r1",)


async def test_a_rescued_runner_has_lost_its_lease(store: Store, clock: ManualClock) -> None:
    await running(store)
    await let_lapse(store, clock)
    await store.leases.rescue(10)
    assert (await store.leases.renew("w1", ["r1"], LEASE)).lost == ("r1",)


async def test_an_ended_runner_has_lost_its_lease(store: Store) -> None:
    await open_lease(store)
    await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=False))
    assert (await store.leases.renew("w1", ["r1"], LEASE)).lost == ("r1",)


async def test_opening_a_lease_twice_is_opening_it_once(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    clock.advance(1)
    await open_lease(store)
    assert (await look(store, job.id)).lease_expires_at == to_datetime(clock.wall() - 1 + LEASE)


async def test_a_renewal_tells_lost_from_kept(store: Store) -> None:
    await open_lease(store, "r1")
    await open_lease(store, "r2")
    assert await store.leases.renew("w1", ["r1", "never", "r2"], LEASE) == Renewal(("r1", "r2"), ("never",))


async def test_only_the_runners_named_are_renewed(store: Store, clock: ManualClock) -> None:
    await open_lease(store, "r1")
    await open_lease(store, "r2")
    for _ in range(5):
        clock.advance(LEASE // 4)
        await store.leases.renew("w1", ["r1"], LEASE)
    assert (await store.leases.renew("w1", ["r1", "r2"], LEASE)).lost == ("r2",)


async def test_jobs_that_are_to_stop_are_named_until_they_do(store: Store) -> None:
    job = await running(store)
    await store.operator.cancel([job.id], "stop")
    await open_lease(store, "r2", "w2")
    for _ in range(2):
        assert await store.leases.cancels("w1") == (CancelRequest(job.id, 1, "r1"),)
    assert await store.leases.cancels("w2") == ()
    await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=False))
    assert await store.leases.cancels("w1") == ()


async def test_what_is_to_stop_can_be_asked_without_renewing(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    ends = (await look(store, job.id)).lease_expires_at
    assert await store.leases.cancels("w1") == ()
    await store.operator.cancel([job.id], "stop")
    assert await store.leases.cancels("w1") == (CancelRequest(job.id, 1, "r1"),)
    assert await store.leases.cancels("w2") == ()
    assert (await look(store, job.id)).lease_expires_at == ends


async def test_vouching_twice_is_vouching_once(store: Store) -> None:
    store.leases.hold_liveness_lock("r1")
    store.leases.hold_liveness_lock("r1")
    await open_lease(store)
    assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
    store.leases.release_liveness_lock("r1")
    store.leases.release_liveness_lock("r1")
