"""counts: exact, by queue and status."""

from collections import Counter

from tests.support.clock import ManualClock
from tests.support.seed import enqueue, put
from windlass.core.moments import DAY
from windlass.core.status import FINISHED, Status
from windlass.store.contract import Store
from windlass.store.records import JobFilter


async def recount(store: Store) -> dict[str, dict[str, int]]:
    page = await store.operator.list(JobFilter(), 1000, None)
    found = Counter((job.queue, str(job.status)) for job in page.items)
    queues = {job.queue for job in page.items}
    return {queue: {status: found[queue, status] for status in map(str, Status)} for queue in sorted(queues)}


async def nonzero(store: Store) -> dict[str, dict[str, int]]:
    return {queue: counts for queue, counts in (await store.operator.counts()).queues.items() if any(counts.values())}


async def test_an_empty_store_counts_nothing(store: Store) -> None:
    counts = await store.operator.counts()
    assert (counts.queues, set(counts.totals.values())) == ({}, {0})


async def test_every_status_in_every_queue_is_counted(store: Store) -> None:
    for n, status in enumerate(Status, start=1):
        for queue in ("a", "b"):
            for _ in range(n if queue == "a" else 1):
                await put(store, status, queue=queue)
    counts = await store.operator.counts()
    assert list(counts.queues["a"].values()) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert set(counts.queues["b"].values()) == {1}
    assert counts.totals[Status.CANCELLED] == 9
    assert counts.queues == await recount(store)


async def test_counts_equal_a_recount_after_every_way_out_of_history(store: Store, clock: ManualClock) -> None:
    for status in sorted(FINISHED):
        for _ in range(4):
            await put(store, status)
        ids = await store.operator.select(JobFilter(status=(status,)), 10, None)
        await store.operator.retry(ids[:1])
        await store.operator.delete(ids[1:2])
        assert await nonzero(store) == await recount(store)
    await store.operator.cancel(await store.operator.select(JobFilter(status=(Status.PENDING,)), 10, None), "")
    assert await nonzero(store) == await recount(store)
    clock.advance(8 * DAY)
    await store.operator.prune(3)
    assert await nonzero(store) == await recount(store)
    clock.advance(90 * DAY)
    await store.operator.prune(100)
    assert await nonzero(store) == await recount(store) == {}


async def test_a_queue_that_was_used_up_counts_zero(store: Store) -> None:
    ids = await enqueue(store, 2)
    await store.operator.cancel(ids, "")
    assert (await store.operator.counts()).totals[Status.PENDING] == 0
