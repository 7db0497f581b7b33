"""What a caller's open transaction keeps others from."""

import psycopg
import pytest

from tests.support.seed import claim_one, completed, enqueue, new_job, open_lease, settle
from windlass.core.job import Enqueued
from windlass.store.contract import Store


@pytest.mark.xfail(strict=True, reason="the place of a queue and priority is made in the caller's transaction")
async def test_the_first_use_of_a_priority_in_an_open_transaction_keeps_nobody_waiting(store: Store) -> None:
    await enqueue(store, queue="q")
    async with await psycopg.AsyncConnection.connect(store.address) as connection:
        await store.jobs.enqueue_inside(connection, [new_job(queue="q", priority=5)], {})
        job = new_job(queue="q", priority=5)
        assert await store.bounded(1.0).jobs.enqueue([job]) == [Enqueued(job.id)]


@pytest.mark.xfail(strict=True, reason="an old snapshot sees neither the living job nor the finished one")
async def test_an_id_that_came_and_ended_since_the_snapshot_is_known(store: Store) -> None:
    await enqueue(store)
    await open_lease(store)
    await settle(store, completed(await claim_one(store)))
    job = new_job()
    async with await psycopg.AsyncConnection.connect(store.address) as connection:
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        await connection.execute("SELECT 1 FROM windlass.jobs")
        await store.jobs.enqueue([job])
        await settle(store, completed(await claim_one(store)))
        assert await store.jobs.enqueue_inside(connection, [job], {}) == [Enqueued(job.id, existing=True)]
