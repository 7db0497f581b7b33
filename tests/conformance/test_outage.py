"""An outage of the store, or a jump of its clock, with free slots: whatever comes first, no runner is dead."""

from collections.abc import Awaitable, Callable

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    LEASE,
    claim_ids,
    completed,
    enqueue_one,
    let_lapse,
    open_lease,
    request,
    requeued,
    running,
    settle,
    status_of,
)
from windlass.core.flow.queue import QueueSettings
from windlass.core.status import Status
from windlass.errors import LeaseLost
from windlass.store.contract import Store
from windlass.store.records import Campaign, Note, Settled

OUTAGE = 3 * LEASE

Verb = Callable[[Store], Awaitable[object]]

FIRST: dict[str, Verb] = {
    "claim": lambda store: store.jobs.claim(request("r1")),
    "claim of an unknown queue": lambda store: store.jobs.claim(request("r1", queues=("nowhere",))),
    "claim of two queues": lambda store: store.jobs.claim(request("r1", queues=("default", "other"))),
    "claim of a limited queue": lambda store: store.jobs.claim(request("r1", queues=("limited",))),
    "admit": lambda store: store.jobs.admit(10),
    "held": lambda store: store.jobs.held("r1"),
    "cancels": lambda store: store.leases.cancels("w1"),
    "campaign": lambda store: store.leader.campaign(Campaign("w2", LEASE)),
    "rescue": lambda store: store.leases.rescue(10),
    "open": lambda store: open_lease(store, "r3", "w3"),
    "renew elsewhere": lambda store: store.leases.renew("w2", ["r2"], LEASE),
}


@pytest.mark.parametrize("first", FIRST)
async def test_a_running_job_stays_with_its_runner(store: Store, clock: ManualClock, first: str) -> None:
    await store.queues.declare({"limited": QueueSettings(max_concurrency=1)})
    job = await running(store, "r1")
    await open_lease(store, "r2", "w2")
    await enqueue_one(store)  # there is something to claim, and room for it
    clock.advance(OUTAGE)
    await FIRST[first](store)
    for beats in range(6):
        assert await store.leases.rescue(10) == []
        assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
        assert beats > 2 or (await store.leases.renew("w2", ["r2"], LEASE)).kept == ("r2",)
        clock.advance(LEASE // 3)
    assert await status_of(store, job.id) is Status.RUNNING
    assert await settle(store, completed(job)) == Settled.SETTLED


async def test_a_claim_gets_nothing_until_the_lease_is_renewed(store: Store, clock: ManualClock) -> None:
    await running(store, "r1")
    id_ = await enqueue_one(store)
    clock.advance(OUTAGE)
    assert await claim_ids(store, "r1") == []
    assert await status_of(store, id_) is Status.PENDING
    await store.leases.renew("w1", ["r1"], LEASE)
    assert await claim_ids(store, "r1") == [id_]


async def test_a_claim_of_a_limited_queue_gets_nothing_either(store: Store, clock: ManualClock) -> None:
    await store.queues.declare({"default": QueueSettings(max_concurrency=5)})
    await running(store, "r1")
    id_ = await enqueue_one(store)
    clock.advance(OUTAGE)
    assert await claim_ids(store, "r1") == []
    await store.leases.renew("w1", ["r1"], LEASE)
    assert await claim_ids(store, "r1") == [id_]


async def test_a_claim_whose_answer_was_lost_is_requeued_though_the_lease_is_over(
    store: Store, clock: ManualClock
) -> None:
    """A runner repeats the claim first, and then compares what it holds."""
    await open_lease(store, "r1")
    id_ = await enqueue_one(store)
    asked = request("r1")
    (job,) = await store.jobs.claim(asked)
    clock.advance(OUTAGE)
    assert await store.jobs.claim(asked) == []
    assert [each.id for each in await store.jobs.held("r1")] == [id_]
    assert await settle(store, requeued(job)) == Settled.SETTLED
    assert await status_of(store, id_) is Status.PENDING


async def test_what_ended_during_the_outage_is_written_before_the_first_beat(
    store: Store, clock: ManualClock
) -> None:
    job = await running(store, "r1")
    clock.advance(OUTAGE)
    await store.jobs.note([Note(id=job.id, queue="default", attempt=1, started_after=1)])
    assert await settle(store, completed(job)) == Settled.SETTLED


async def test_one_that_was_silent_alone_is_gone(store: Store, clock: ManualClock) -> None:
    """The others renewed all the time, so there was no outage."""
    job = await running(store, "r1")
    await let_lapse(store, clock)
    assert await claim_ids(store, "r1") == []
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]
    with pytest.raises(LeaseLost):
        await claim_ids(store, "r1")


async def test_looking_for_the_dead_is_no_sign_of_life(store: Store, clock: ManualClock) -> None:
    """If renewals fail for all runners, a coordinator that can still look must not take all of them for dead."""
    job = await running(store, "r1")
    for _ in range(12):
        clock.advance(LEASE // 8)
        await store.leader.campaign(Campaign("w2", LEASE))
        assert await store.leases.rescue(10) == []
    assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
    assert await status_of(store, job.id) is Status.RUNNING


async def test_a_new_runner_is_no_sign_of_life_of_the_others(store: Store, clock: ManualClock) -> None:
    job = await running(store, "r1")
    for n in range(9):
        clock.advance(LEASE // 6)
        await open_lease(store, f"new{n}", "w2")
        assert await store.leases.rescue(10) == []
    assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
    assert await status_of(store, job.id) is Status.RUNNING


async def test_a_renewal_that_keeps_nothing_is_no_sign_of_life(store: Store, clock: ManualClock) -> None:
    job = await running(store, "r1")
    for _ in range(9):
        clock.advance(LEASE // 6)
        assert (await store.leases.renew("w2", ["gone"], LEASE)).lost == ("gone",)
        assert await store.leases.rescue(10) == []
    assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
    assert await status_of(store, job.id) is Status.RUNNING
