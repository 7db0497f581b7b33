"""What a caller's open transaction keeps others from, and what an old snapshot does not see: as the guide says it."""

import psycopg
import pytest

from tests.support.seed import claim_one, completed, enqueue, new_job, open_lease, settle, status_of
from windlass.core.jobs.job import Enqueued
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.postgres.limits import throttle
from windlass.store.records import Settled


async def test_the_first_use_of_a_priority_in_an_open_transaction_holds_others_up_until_it_ends(store: Store) -> None:
    await enqueue(store, queue="q")
    job = new_job(queue="q", priority=5)
    async with await psycopg.AsyncConnection.connect(store.address) as connection:
        await store.jobs.enqueue_inside(connection, [new_job(queue="q", priority=5)], {})
        with pytest.raises(StoreUnavailable, match="no answer within") as held_up:
            await store.with_timeout(0.5).jobs.enqueue([job])
        assert not held_up.value.maybe_done
        other = new_job(queue="q", priority=4)
        assert await store.with_timeout(5.0).jobs.enqueue([other]) == [Enqueued(other.id)], "no other call is held up"
    assert await store.jobs.enqueue([job]) == [Enqueued(job.id)]


async def test_an_id_that_came_and_ended_since_the_snapshot_runs_again_and_harms_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is committed late: claims look that far back at once, however slow the machine.
    monkeypatch.setattr(throttle, "SHARE", 0)
    await enqueue(store)
    await open_lease(store)
    await settle(store, completed(await claim_one(store)))
    job = new_job()
    async with await psycopg.AsyncConnection.connect(store.address) as connection:
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        await connection.execute("SELECT 1 FROM windlass.jobs")
        await store.jobs.enqueue([job])
        await settle(store, completed(await claim_one(store)))
        assert await store.jobs.enqueue_inside(connection, [job], {}) == [Enqueued(job.id)]
    again = await claim_one(store)
    assert again.id == job.id
    assert await settle(store, completed(again)) in (Settled.SETTLED, Settled.ALREADY)
    assert await status_of(store, job.id) is Status.COMPLETED
