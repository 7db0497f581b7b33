"""Large enqueues of chains: all links or none, and each finds its parent whatever portion that came with."""

import pytest

from tests.redis.deaths import dying_at
from tests.support.chains import enqueue_jobs, links
from tests.support.clock import ManualClock
from tests.support.key_queues import take
from tests.support.seed import completed
from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.core.moments import SECOND
from windlass.store.redis.store import RedisStore


async def test_a_thousand_chains_of_ten_come_in_one_enqueue(store: RedisStore) -> None:
    chains = [links(10) for _ in range(1000)]
    jobs = [job for each in chains for job in each]
    assert await enqueue_jobs(store, jobs) == [job.id for job in jobs]
    counts = (await store.operator.counts()).queues["default"]
    assert (counts["pending"], counts["blocked"]) == (1000, 9000)
    assert await store._access.call("check_counts", "default", ()) == []


@pytest.mark.parametrize(("name", "comes"), [("stage_batch", False), ("commit_batch", True), ("store_batch", True)])
async def test_a_large_enqueue_of_chains_is_stored_wholly_or_not_at_all(
    store: RedisStore, clock: ManualClock, name: str, comes: bool
) -> None:
    jobs: list[NewJob] = [job for _ in range(60) for job in links(10)]
    with dying_at((name, True)):
        await enqueue_jobs(store, jobs)
    clock.advance(700 * SECOND)
    await store.tidy()
    assert (await store.operator.get([jobs[-1].id]) != [None]) is comes
    ran: list[JobId] = []
    while some := await take(store, f"r{len(ran)}", limit=100):
        await store.jobs.settle([completed(job) for job in some])
        ran += [job.id for job in some]
    assert len(ran) == (600 if comes else 0)
