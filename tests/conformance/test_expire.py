"""expire: a job that has not started in time is cancelled, and never handed out."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    LEASE,
    Ending,
    claim_ids,
    completed,
    dead,
    enqueue,
    enqueue_one,
    failed,
    let_lapse,
    look,
    new_job,
    open_lease,
    put,
    requeued,
    running,
    settle,
    snoozed,
    status_of,
)
from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.job import Enqueued
from windlass.core.moments import DAY, SECOND, to_datetime
from windlass.core.status import FINISHED, WAITING, Status
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd

LIFE = 10 * DAY


async def test_a_job_expires_this_long_after_it_was_enqueued(store: Store, clock: ManualClock) -> None:
    found = await look(store, await enqueue_one(store, expires=LIFE))
    assert found.expires_at == to_datetime(clock.wall() + LIFE)


async def test_a_job_expires_at_a_given_moment(store: Store, clock: ManualClock) -> None:
    moment = clock.wall() + 7
    assert (await look(store, await enqueue_one(store, expires_at=moment))).expires_at == to_datetime(moment)


@pytest.mark.parametrize("status", sorted(WAITING))
async def test_a_waiting_job_is_cancelled_when_its_time_is_over(
    store: Store, clock: ManualClock, status: Status
) -> None:
    id_ = await put(store, status, expires=LIFE)
    clock.advance(LIFE - 1)
    assert len(await store.jobs.expire(10)) == 0
    assert await status_of(store, id_) is status
    clock.advance(1)
    assert len(await store.jobs.expire(10)) == 1
    found = await look(store, id_)
    assert (found.status, found.reason) == (Status.CANCELLED, "expired")
    assert found.finished_at == to_datetime(clock.wall())
    assert len(await store.jobs.expire(10)) == 0


@pytest.mark.parametrize("status", sorted({Status.RUNNING} | FINISHED))
async def test_a_running_or_finished_job_is_left_alone(store: Store, clock: ManualClock, status: Status) -> None:
    id_ = await put(store, status, expires=SECOND)
    clock.advance(SECOND)
    assert len(await store.jobs.expire(10)) == 0
    assert await status_of(store, id_) is status


async def test_jobs_without_an_expiry_wait_for_ever(store: Store, clock: ManualClock) -> None:
    ids = await enqueue(store, 3)
    clock.advance(1000 * DAY)
    assert len(await store.jobs.expire(10)) == 0
    await open_lease(store)
    assert await claim_ids(store) == ids


async def test_no_more_than_the_limit_goes_at_a_time_the_longest_expired_first(
    store: Store, clock: ManualClock
) -> None:
    ids = [await enqueue_one(store, expires=(5 - n) * SECOND) for n in range(5)]
    clock.advance(10 * SECOND)
    assert len(await store.jobs.expire(2)) == 2
    assert [await status_of(store, id_) for id_ in ids] == [Status.PENDING] * 3 + [Status.CANCELLED] * 2
    assert [len(await store.jobs.expire(2)) for _ in range(3)] == [2, 1, 0]


async def test_a_claim_never_hands_out_an_expired_job(store: Store, clock: ManualClock) -> None:
    first, second = await enqueue_one(store, expires=SECOND), await enqueue_one(store, expires=2 * SECOND)
    third = await enqueue_one(store)
    await open_lease(store)
    clock.advance(SECOND)
    assert await claim_ids(store) == [second, third]
    await store.jobs.expire(10)
    assert await status_of(store, first) is Status.CANCELLED
    assert (await look(store, first)).attempt == 0


async def test_a_claim_never_hands_out_an_expired_job_however_many_have_expired(
    store: Store, clock: ManualClock
) -> None:
    await enqueue(store, 250, expires=SECOND)
    good = await enqueue(store, 3)
    clock.advance(2 * SECOND)
    await open_lease(store)
    taken: list[str] = []
    for _ in range(10):
        taken += await claim_ids(store, limit=2)
    assert taken == good


async def test_a_claim_is_not_held_up_by_a_flood_of_expired_jobs_in_another_queue(
    store: Store, clock: ManualClock
) -> None:
    await enqueue(store, 300, queue="other", expires=SECOND)
    good = await enqueue_one(store)
    clock.advance(2 * SECOND)
    await open_lease(store)
    assert await claim_ids(store, limit=1) == [good]


async def test_a_flood_of_expired_jobs_does_not_hide_a_good_one_for_ever(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 2500, expires=SECOND)
    good = await enqueue_one(store)
    clock.advance(2 * SECOND)
    await open_lease(store)
    tries = [await claim_ids(store) for _ in range(6)]
    assert [ids for ids in tries if ids] == [[good]]
    while await store.jobs.expire(500):
        pass
    assert (await store.operator.counts()).totals["cancelled"] == 2500


async def test_expiry_ends_the_wait_of_a_job_that_is_due_at_that_moment(store: Store, clock: ManualClock) -> None:
    id_ = await enqueue_one(store, delay=SECOND, expires=SECOND)
    clock.advance(SECOND)
    await store.jobs.admit(10)
    await open_lease(store)
    assert await claim_ids(store) == []
    await store.jobs.expire(10)
    assert await status_of(store, id_) is Status.CANCELLED


@pytest.mark.parametrize("ending", [failed, snoozed, requeued])
async def test_an_attempt_that_fails_after_the_expiry_is_not_made_again(
    store: Store, clock: ManualClock, ending: Ending
) -> None:
    job = await running(store, expires=SECOND)
    clock.advance(SECOND)
    await settle(store, ending(job))
    found = await look(store, job.id)
    assert (found.status, found.reason) == (Status.CANCELLED, "expired")
    assert len(found.attempts) == 1


@pytest.mark.parametrize(("ending", "status"), [(completed, Status.COMPLETED), (dead, Status.DEAD)])
async def test_an_attempt_that_began_in_time_may_end_late(
    store: Store, clock: ManualClock, ending: Ending, status: Status
) -> None:
    job = await running(store, expires=SECOND)
    clock.advance(SECOND)
    await settle(store, ending(job))
    assert await status_of(store, job.id) is status


async def test_a_job_that_fails_before_its_expiry_is_tried_again_until_then(store: Store, clock: ManualClock) -> None:
    job = await running(store, expires=DAY)
    await settle(store, failed(job))
    clock.advance(DAY - 1)
    await store.jobs.admit(10)
    assert await status_of(store, job.id) is Status.PENDING
    clock.advance(1)
    assert len(await store.jobs.expire(10)) == 1


async def test_a_job_whose_runner_is_gone_is_not_run_after_its_expiry(store: Store, clock: ManualClock) -> None:
    job = await running(store, expires=LEASE)
    await let_lapse(store, clock)
    (rescued,) = await store.leases.rescue(10)
    assert (rescued.id, rescued.status) == (job.id, Status.CANCELLED)
    assert (await look(store, job.id)).reason == "expired"


async def test_a_job_whose_runner_crashed_is_not_run_after_its_expiry(store: Store, clock: ManualClock) -> None:
    job = await running(store, expires=SECOND)
    clock.advance(SECOND)
    (end,) = await store.leases.end(RunnerEnd(runner="r1", started=frozenset({(job.id, 1)}), crashed=True))
    assert end.status is Status.CANCELLED


async def test_the_request_to_stop_is_still_the_reason(store: Store, clock: ManualClock) -> None:
    job = await running(store, expires=SECOND)
    await store.operator.cancel([job.id], "enough")
    clock.advance(SECOND)
    await settle(store, failed(job))
    assert (await look(store, job.id)).reason == "enough"


async def test_an_expired_job_frees_its_key(store: Store, clock: ManualClock) -> None:
    await enqueue_one(store, idempotency_key="k", expires=SECOND)
    windowed = await enqueue_one(store, idempotency_key="l", idempotency_window=DAY, expires=SECOND)
    clock.advance(SECOND)
    await store.jobs.expire(10)
    jobs = [new_job(idempotency_key="k"), new_job(idempotency_key="l")]
    assert await store.jobs.enqueue(jobs) == [Enqueued(jobs[0].id), Enqueued(windowed, existing=True)]


async def test_an_expired_job_is_counted_and_kept_as_its_queue_says(store: Store, clock: ManualClock) -> None:
    await store.queues.change("brief", QueueSettings(retention={Status.CANCELLED: 0}))
    kept, gone = await enqueue_one(store, expires=1), await enqueue_one(store, queue="brief", expires=1)
    clock.advance(1)
    assert len(await store.jobs.expire(10)) == 2
    assert await store.operator.get([gone]) == [None]
    assert await status_of(store, kept) is Status.CANCELLED
    assert (await store.operator.counts()).totals["cancelled"] == 1
    assert await store.jobs.enqueue([new_job(id=gone, queue="brief")]) == [Enqueued(gone, existing=True)]


@pytest.mark.parametrize("status", [Status.FAILED, Status.CANCELLED, Status.DEAD, Status.COMPLETED])
async def test_a_retried_job_expires_no_more(store: Store, clock: ManualClock, status: Status) -> None:
    id_ = await put(store, status, type="t", expires=DAY)
    clock.advance(2 * DAY)
    await store.operator.retry([id_])
    assert (await look(store, id_)).expires_at is None
    assert len(await store.jobs.expire(10)) == 0
    await open_lease(store)
    assert await claim_ids(store) == [id_]


async def test_a_repeated_claim_still_finds_its_jobs_after_their_expiry(store: Store, clock: ManualClock) -> None:
    id_ = await enqueue_one(store, expires=SECOND)
    await open_lease(store)
    assert await claim_ids(store, claim=7) == [id_]
    clock.advance(SECOND)
    assert await claim_ids(store, claim=7) == [id_]
