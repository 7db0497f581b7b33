"""Two do something at the same moment: one of them waits, and then goes by what the other has done."""

import asyncio
from collections import Counter

import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import LEASE, claim_ids, enqueue, open_lease, put, running, status_of
from windlass.core.moments import DAY, SECOND
from windlass.core.status import FINISHED, Status
from windlass.store.contract import Store
from windlass.store.records import JobFilter


async def test_a_rescue_waits_until_the_first_call_after_the_outage_has_granted_grace(
    store: Store, clock: ManualClock, other: Other
) -> None:
    job = await running(store)
    clock.advance(DAY)
    now = clock.wall()
    await other.does("SELECT at FROM windlass.lease_activity FOR UPDATE")
    rescuing = asyncio.create_task(store.leases.rescue(10))
    await other.is_waited_for()
    await other.does("UPDATE windlass.leases SET expires_at = %s + length, graces = 1", now)
    await other.does("UPDATE windlass.lease_activity SET at = %s", now)
    await other.commits()
    assert await rescuing == []
    assert await status_of(store, job.id) is Status.RUNNING
    assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)


async def test_a_renewal_that_waited_for_a_rescuer_brings_nothing_back(store: Store, other: Other) -> None:
    await open_lease(store, "r1")
    await open_lease(store, "r2")
    await other.does("DELETE FROM windlass.leases WHERE runner = 'r1'")
    renewing = asyncio.create_task(store.leases.renew("w1", ["r1", "r2"], LEASE))
    await other.is_waited_for()
    await other.commits()
    renewal = await renewing
    assert (renewal.kept, renewal.lost) == (("r2",), ("r1",))
    assert await other.does("SELECT runner FROM windlass.leases") == [("r2",)]


async def test_a_rescuer_leaves_a_lease_that_is_being_renewed(store: Store, clock: ManualClock, other: Other) -> None:
    job = await running(store)
    await open_lease(store, "r2")
    await other.does("UPDATE windlass.leases SET expires_at = expires_at + 1 WHERE runner = 'r1'")
    for _ in range(3):
        clock.advance(LEASE // 3)
        await store.leases.renew("w1", ["r2"], LEASE)
    assert await store.leases.rescue(10) == []
    await other.commits()
    assert await status_of(store, job.id) is Status.RUNNING


async def test_a_claim_that_was_committed_after_its_lease_was_deleted_is_put_back(
    store: Store, clock: ManualClock, other: Other
) -> None:
    job = await running(store)
    await other.does("DELETE FROM windlass.leases")
    await other.commits()
    assert await store.leases.rescue(10) == [], "the session that deleted it may be about to put the job back"
    clock.advance(10 * SECOND)
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]
    assert await status_of(store, job.id) is Status.PENDING


async def test_what_another_admits_or_expires_at_this_moment_is_left_to_it(
    store: Store, clock: ManualClock, other: Other
) -> None:
    first, second = await enqueue(store, 2, delay=SECOND, expires=2 * SECOND)
    clock.advance(2 * SECOND)
    await other.does("SELECT id FROM windlass.jobs WHERE id = %s FOR UPDATE", first)
    assert len(await store.jobs.expire(10)) == 1
    assert await status_of(store, second) is Status.CANCELLED
    assert (await store.jobs.admit(10)).jobs == 0
    await other.commits()
    assert (await store.jobs.admit(10)).jobs == 1


async def test_several_admit_each_job_once(store: Store, clock: ManualClock) -> None:
    ids = await enqueue(store, 90, delay=SECOND)
    clock.advance(SECOND)
    admitted = await asyncio.gather(*[store.jobs.admit(40) for _ in range(4)])
    while (more := await store.jobs.admit(40)).jobs:
        admitted.append(more)
    assert sum(each.jobs for each in admitted) == 90
    await open_lease(store)
    assert sorted(await claim_ids(store, limit=100)) == sorted(ids)


async def test_a_cancel_that_waited_for_a_settlement_answers_how_the_job_ended(store: Store, other: Other) -> None:
    id_ = await put(store, Status.COMPLETED)
    waiting = (await enqueue(store))[0]
    # Another one settles the waiting job: it leaves the living and enters history in one transaction.
    await other.does("DELETE FROM windlass.jobs WHERE id = %s", waiting)
    await other.does("UPDATE windlass.history SET id = %s WHERE id = %s", waiting, id_)
    cancelling = asyncio.create_task(store.operator.cancel([waiting], "late"))
    await other.is_waited_for()
    await other.commits()
    (moved,) = await cancelling
    assert moved is not None
    assert (moved.status, moved.done) == (Status.COMPLETED, False)


@pytest.mark.parametrize("status", sorted(FINISHED))
async def test_of_a_retry_and_a_delete_of_the_same_jobs_one_takes_effect(store: Store, status: Status) -> None:
    ids = [await put(store, status, idempotency_key=f"k{n}") for n in range(12)]
    verbs = [
        store.operator.retry(ids),
        store.operator.delete(ids[::-1]),
        store.operator.retry(ids[::-1]),
        store.operator.delete(ids),
    ]
    answers = await asyncio.gather(*verbs)
    done = Counter(moved.id for answer in answers for moved in answer if moved is not None and moved.done)
    assert set(done) == set(ids)
    # A retried job is pending and cannot be deleted; a deleted one is gone and cannot be retried.
    assert set(done.values()) == {1}
    pending = await store.operator.select(JobFilter(status=(Status.PENDING,)), 100, None)
    totals = {name: jobs for name, jobs in (await store.operator.counts()).totals.items() if jobs}
    assert totals == ({Status.PENDING: len(pending)} if pending else {})
    assert [job is not None for job in await store.operator.get(ids)] == [id_ in pending for id_ in ids]
