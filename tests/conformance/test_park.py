"""park: jobs of types that no live worker knows get out of the way, cost nothing, and come back."""

from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, enqueue, enqueue_one, look, open_lease, status_of, worker_info
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.contract import Store


async def test_strangers_are_parked_and_say_why(store: Store) -> None:
    await store.workers.beat(worker_info(types=("known",)))
    strange, known = await enqueue_one(store, type="strange"), await enqueue_one(store, type="known")
    assert await store.jobs.park() == {"strange": 1}
    found = await look(store, strange)
    assert (found.status, found.reason) == (Status.BLOCKED, "no worker for type")
    assert await status_of(store, known) is Status.PENDING


async def test_without_a_live_worker_no_job_is_in_the_way_of_another(store: Store) -> None:
    id_ = await enqueue_one(store)
    assert await store.jobs.park() == {}
    assert await status_of(store, id_) is Status.PENDING


async def test_a_silent_worker_does_not_count(store: Store, clock: ManualClock) -> None:
    await store.workers.beat(worker_info("w1", types=("t",)))
    clock.advance(DAY)
    await store.workers.beat(worker_info("w2", types=("other",)))
    await enqueue_one(store, type="t")
    assert await store.jobs.park() == {"t": 1}


async def test_any_live_worker_that_knows_the_type_is_enough(store: Store) -> None:
    await store.workers.beat(worker_info("w1", types=("a",)))
    await store.workers.beat(worker_info("w2", types=("b",)))
    await enqueue_one(store, type="b")
    assert await store.jobs.park() == {}


async def test_all_jobs_of_a_strange_type_are_counted_over_all_queues(store: Store) -> None:
    await store.workers.beat(worker_info(types=("known",)))
    await enqueue(store, 3, type="strange")
    await enqueue(store, 2, type="strange", queue="other")
    assert await store.jobs.park() == {"strange": 5}
    assert await store.jobs.park() == {}


async def test_parked_jobs_come_back_at_their_old_rank_when_a_worker_knows_them(
    store: Store, clock: ManualClock
) -> None:
    await store.workers.beat(worker_info(types=("known",)))
    parked = await enqueue_one(store, type="strange")
    await store.jobs.park()
    clock.advance(SECOND)
    later = await enqueue_one(store, type="known")
    await store.workers.beat(worker_info(types=("known", "strange")))
    found = await look(store, parked)
    assert (found.status, found.reason) == (Status.PENDING, None)
    await open_lease(store)
    assert await claim_ids(store, types=("known", "strange")) == [parked, later]


async def test_a_parked_job_can_be_cancelled(store: Store) -> None:
    await store.workers.beat(worker_info(types=("known",)))
    id_ = await enqueue_one(store, type="strange")
    await store.jobs.park()
    await store.operator.cancel([id_], "never mind")
    assert await status_of(store, id_) is Status.CANCELLED


async def test_the_types_of_parked_jobs_are_known_until_the_jobs_are_back(store: Store) -> None:
    await store.workers.beat(worker_info(types=("known",)))
    for type_, queue in [
        ("b.strange", "mail"),
        ("a.strange", "default"),
        ("b.strange", "default"),
        ("known", "mail"),
    ]:
        await enqueue_one(store, type=type_, queue=queue)
    assert await store.jobs.parked_types() == []
    await store.jobs.park()
    assert await store.jobs.parked_types() == ["a.strange", "b.strange"]
    await store.workers.beat(worker_info(types=("known", "b.strange")))
    assert await store.jobs.parked_types() == ["a.strange"]
