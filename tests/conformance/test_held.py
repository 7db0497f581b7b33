"""held: what the store thinks a runner is running."""

from tests.support.clock import ManualClock
from tests.support.seed import completed, enqueue, let_lapse, open_lease, request, requeued, running, settle
from windlass.store.contract import Store
from windlass.store.records import Held


async def test_an_idle_or_unknown_runner_holds_nothing(store: Store) -> None:
    await open_lease(store)
    assert await store.jobs.held("r1") == []
    assert await store.jobs.held("nobody") == []


async def test_a_runner_holds_what_it_claimed_and_has_not_settled(store: Store) -> None:
    await enqueue(store, 3)
    await open_lease(store)
    jobs = await store.jobs.claim(request(claim=7))
    await settle(store, completed(jobs[0]))
    await settle(store, requeued(jobs[1]))
    assert await store.jobs.held("r1") == [Held(jobs[2].id, 1, "default", 7)]


async def test_a_runner_does_not_hold_what_another_claimed(store: Store) -> None:
    mine, others = await running(store, "r1"), await running(store, "r2")
    assert [each.id for each in await store.jobs.held("r1")] == [mine.id]
    assert [each.id for each in await store.jobs.held("r2")] == [others.id]


async def test_a_rescued_runner_holds_nothing(store: Store, clock: ManualClock) -> None:
    await running(store)
    await let_lapse(store, clock)
    await store.leases.rescue(10)
    assert await store.jobs.held("r1") == []
