"""claim: best first, never two holders, repeatable, only under a lease."""

import asyncio

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    LEASE,
    claim_ids,
    claim_one,
    completed,
    enqueue,
    enqueue_one,
    let_lapse,
    look,
    open_lease,
    put,
    request,
    requeued,
    running,
    settle,
)
from windlass.core.moments import SECOND, to_datetime
from windlass.core.status import Status
from windlass.errors import LeaseLost
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, QueueQuota, RunnerEnd


async def test_a_claimed_job_is_running_under_its_runner(store: Store, clock: ManualClock) -> None:
    job = await running(store, payload='{"a": 1}', tenant="acme", tags=("x",), meta="{}", timeout=SECOND)
    assert (job.payload, job.tenant, job.tags, job.meta, job.timeout) == ('{"a": 1}', "acme", '["x"]', "{}", SECOND)
    assert (job.attempt, job.max_attempts, job.claimed_at) == (1, 3, clock.wall())
    found = await look(store, job.id)
    assert (found.status, found.worker, found.attempt) == (Status.RUNNING, "r1", 1)
    assert found.claimed_at == to_datetime(clock.wall())
    assert found.lease_expires_at == to_datetime(clock.wall() + LEASE)
    assert [(each.attempt, each.outcome) for each in found.attempts] == [(1, "running")]


async def test_priority_comes_first_then_rank_then_id(store: Store, clock: ManualClock) -> None:
    early = await enqueue(store, 2)
    clock.advance(1)
    late = await enqueue_one(store)
    high = await enqueue_one(store, priority=1)
    low = await enqueue_one(store, priority=-1, run_at=0)
    lowest = await enqueue_one(store, priority=-32768, run_at=0)
    highest = await enqueue_one(store, priority=32767)
    await open_lease(store)
    assert await claim_ids(store) == [highest, high, *sorted(early), late, low, lowest]


async def test_the_limit_takes_the_best(store: Store) -> None:
    low = await enqueue_one(store)
    high = await enqueue_one(store, priority=1)
    await open_lease(store)
    assert await claim_ids(store, limit=1) == [high]
    assert await claim_ids(store, limit=1) == [low]


async def test_a_claim_of_nothing_takes_nothing(store: Store) -> None:
    id_ = await enqueue_one(store)
    await open_lease(store)
    assert await claim_ids(store, limit=0) == []
    assert await claim_ids(store, most=0) == []
    assert await claim_ids(store, queues=()) == []
    assert (await look(store, id_)).attempt == 0


async def test_only_known_types_are_claimed(store: Store) -> None:
    await enqueue_one(store, type="strange", priority=9)
    known = await enqueue_one(store, type="known")
    await open_lease(store)
    assert await claim_ids(store, types=("known", "also known")) == [known]
    assert await claim_ids(store, types=()) == []


async def test_an_earlier_queue_is_emptied_before_a_later_one(store: Store) -> None:
    second = await enqueue(store, 2, queue="second", priority=100)
    first = await enqueue(store, 2, queue="first")
    await open_lease(store)
    assert await claim_ids(store, queues=("first", "second"), limit=3) == [*first, second[0]]


async def test_a_share_takes_no_more_than_its_most(store: Store) -> None:
    first, second = await enqueue(store, 3, queue="first"), await enqueue(store, 3, queue="second")
    await open_lease(store)
    quotas = (QueueQuota("first", 1), QueueQuota("second", 2))
    jobs = await store.jobs.claim(ClaimRequest(runner="r1", claim=1, quotas=quotas, types=("t",), limit=10))
    assert [job.id for job in jobs] == [first[0], *second[:2]]


async def test_other_queues_are_left_alone(store: Store) -> None:
    await enqueue_one(store, queue="other")
    await open_lease(store)
    assert await claim_ids(store) == []


async def test_a_paused_queue_is_not_claimed_from_until_resumed(store: Store) -> None:
    here, there = await enqueue_one(store), await enqueue_one(store, queue="other")
    await open_lease(store)
    await store.queues.pause("default", None)
    assert await claim_ids(store, queues=("default", "other")) == [there]
    await store.queues.resume("default")
    assert await claim_ids(store) == [here]


async def test_a_pause_with_an_end_ends(store: Store, clock: ManualClock) -> None:
    id_ = await enqueue_one(store)
    await open_lease(store)
    await store.queues.pause("default", 5 * SECOND)
    clock.advance(5 * SECOND - 1)
    assert await claim_ids(store) == []
    clock.advance(1)
    assert await claim_ids(store) == [id_]


async def test_a_claim_repeated_returns_the_same_jobs_in_the_same_order(store: Store) -> None:
    await enqueue(store, 2, queue="first")
    await enqueue(store, 2, queue="second", priority=5)
    await open_lease(store)
    asked = request(queues=("first", "second"), limit=3)
    first = await store.jobs.claim(asked)
    await enqueue_one(store, queue="first", priority=9)
    assert len(first) == 3
    assert await store.jobs.claim(asked) == first
    assert {job.attempt for job in first} == {1}


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_a_claim_of_shares_repeated_takes_nothing_more(store: Store, most: int) -> None:
    """Whichever of the queues gave jobs the first time, and whatever they could give now."""
    await enqueue(store, 5, queue="second")
    await open_lease(store)
    asked = request(queues=("first", "second", "third"), limit=4, most=most)
    once = await store.jobs.claim(asked)
    assert len(once) == most
    await enqueue(store, 5, queue="first")
    await enqueue(store, 5, queue="third", priority=3)
    assert await store.jobs.claim(asked) == once
    both = request(queues=("third", "first"), limit=4, most=most)
    taken = await store.jobs.claim(both)
    assert [job.queue for job in taken] == ["third"] * most + ["first"] * min(most, 4 - most)
    assert await store.jobs.claim(both) == taken


async def test_a_claim_repeated_leaves_out_what_was_settled_since(store: Store) -> None:
    await enqueue(store, 3)
    await open_lease(store)
    asked = request(limit=2)
    done, back = await store.jobs.claim(asked)
    await settle(store, completed(done))
    assert [job.id for job in await store.jobs.claim(asked)] == [back.id]


async def test_the_same_number_of_another_runner_is_another_claim(store: Store) -> None:
    first, second = await enqueue(store, 2)
    await open_lease(store, "r1")
    await open_lease(store, "r2")
    assert await claim_ids(store, "r1", claim=1, limit=1) == [first]
    assert await claim_ids(store, "r2", claim=1, limit=1) == [second]


async def test_a_requeued_job_is_not_under_its_old_claim(store: Store) -> None:
    await enqueue(store, 1)
    await open_lease(store, "r1")
    await open_lease(store, "r2")
    (job,) = await store.jobs.claim(request("r1", claim=1))
    await settle(store, requeued(job))
    again = await claim_one(store, "r2")
    assert (again.id, again.attempt) == (job.id, 2)
    assert await store.jobs.claim(request("r1", claim=1)) == []


async def test_a_runner_without_a_lease_gets_nothing(store: Store) -> None:
    await enqueue_one(store)
    with pytest.raises(LeaseLost):
        await store.jobs.claim(request("nobody"))


async def test_a_runner_whose_lease_lapsed_gets_nothing_even_before_it_is_rescued(
    store: Store, clock: ManualClock
) -> None:
    held = await running(store)
    id_ = await enqueue_one(store)
    await let_lapse(store, clock)
    assert await store.jobs.claim(request("r1")) == []
    assert (await look(store, held.id)).status is Status.RUNNING
    assert (await look(store, id_)).status is Status.PENDING


async def test_a_repeated_claim_needs_a_lease_too(store: Store) -> None:
    """Its jobs belong to others now."""
    await enqueue_one(store)
    await open_lease(store)
    asked = request()
    await store.jobs.claim(asked)
    await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=True))
    with pytest.raises(LeaseLost):
        await store.jobs.claim(asked)


async def test_the_attempt_grows_at_each_claim(store: Store) -> None:
    job = await running(store)
    for attempt in (2, 3, 4):
        await settle(store, requeued(job))
        job = await claim_one(store)
        assert job.attempt == attempt


async def test_runners_that_claim_at_once_never_get_the_same_job(store: Store) -> None:
    ids = await enqueue(store, 60)
    runners = [await open_lease(store, f"r{n}") for n in range(6)]
    taken = await asyncio.gather(*(claim_ids(store, runner, limit=15) for runner in runners))
    flat = [id_ for each in taken for id_ in each]
    assert sorted(flat) == sorted(ids)
    assert len(set(flat)) == len(flat)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PENDING])
async def test_only_pending_jobs_are_claimed(store: Store, status: Status) -> None:
    id_ = await put(store, status, type="t")
    await open_lease(store)
    assert await claim_ids(store) == []
    assert (await look(store, id_)).status is status
