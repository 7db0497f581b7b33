"""The registry of workers: those that are alive."""

import msgspec

from tests.support.clock import ManualClock
from tests.support.seed import claim_one, completed, enqueue, open_lease, settle, worker_info
from windlass.core.moments import SECOND, to_datetime
from windlass.store.contract import Store
from windlass.store.records import Campaign


async def test_a_worker_is_listed_as_it_registered_with_the_times_of_the_store(
    store: Store, clock: ManualClock
) -> None:
    info = worker_info(queues=("a", "b"), types=("x",), per_minute=1.5, draining=True, parameters={"x": ("a",)})
    await store.workers.beat(info)
    started = to_datetime(clock.wall())
    clock.advance(SECOND)
    await store.workers.beat(info)
    now = to_datetime(clock.wall())
    assert await store.workers.list() == [msgspec.structs.replace(info, started_at=started, beat_at=now)]


async def test_a_beat_replaces_what_was_said_before(store: Store) -> None:
    await store.workers.beat(worker_info(per_minute=1))
    await store.workers.beat(worker_info(per_minute=2))
    assert [each.per_minute for each in await store.workers.list()] == [2]


async def test_what_a_worker_runs_is_counted_when_it_is_listed_not_as_it_said(store: Store) -> None:
    await store.workers.beat(worker_info("w1", running=7))
    await store.workers.beat(worker_info("w2", running=7))
    for runner in ("r1", "r2"):
        await open_lease(store, runner, "w1")
    await open_lease(store, "r3", "w2")
    await enqueue(store, 4)
    jobs = [await claim_one(store, runner) for runner in ("r1", "r1", "r2", "r3")]
    assert [(each.id, each.running) for each in await store.workers.list()] == [("w1", 3), ("w2", 1)]
    for job in jobs:
        await settle(store, completed(job))
    assert [each.running for each in await store.workers.list()] == [0, 0]


async def test_a_worker_that_signed_off_is_gone(store: Store) -> None:
    await store.workers.beat(worker_info("w1"))
    await store.workers.beat(worker_info("w2"))
    await store.workers.unregister("w1")
    await store.workers.unregister("never there")
    assert [each.id for each in await store.workers.list()] == ["w2"]


async def test_a_worker_that_fell_silent_is_not_listed_until_it_beats(store: Store, clock: ManualClock) -> None:
    await store.workers.beat(worker_info())
    clock.advance(59 * SECOND)
    assert len(await store.workers.list()) == 1
    clock.advance(SECOND)
    assert await store.workers.list() == []
    await store.workers.beat(worker_info())
    assert len(await store.workers.list()) == 1


async def test_a_coordinator_clears_dead_workers_away(store: Store, clock: ManualClock) -> None:
    """A worker that comes back after that starts anew."""
    await store.workers.beat(worker_info("old"))
    clock.advance(3600 * SECOND)
    await store.leader.campaign(Campaign("w2", SECOND))
    await store.workers.beat(worker_info("old"))
    (found,) = await store.workers.list()
    assert found.started_at == to_datetime(clock.wall())
