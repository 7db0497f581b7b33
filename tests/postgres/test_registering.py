"""A worker is registered, whatever becomes of the jobs that wait for it."""

from tests.postgres.other import Other
from tests.support.seed import enqueue, worker_info
from windlass.store.contract import Store


async def test_a_worker_registers_while_parked_jobs_cannot_be_freed(store: Store, other: Other) -> None:
    await store.workers.beat(worker_info("w1", types=("known",)))
    await enqueue(store, 5, type="strange")
    await store.jobs.park()
    await other.does("LOCK TABLE windlass.watermarks IN EXCLUSIVE MODE")
    await store.with_timeout(5.0).workers.beat(worker_info("w2", types=("strange",)))
    assert {worker.id for worker in await store.workers.list()} == {"w1", "w2"}
    await other.commits()
    await store.jobs.park()
    assert (await store.operator.counts()).queues["default"]["pending"] == 5
