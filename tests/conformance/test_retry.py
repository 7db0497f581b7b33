"""retry: finished or failed jobs run again, with a fresh budget and their history."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    claim_ids,
    claim_one,
    completed,
    enqueue_one,
    failed,
    look,
    new_job,
    open_lease,
    put,
    running,
    settle,
    status_of,
)
from windlass.core.jobs.job import Enqueued
from windlass.core.moments import SECOND, to_datetime
from windlass.core.status import FINISHED, RETRYABLE, Status
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd, Transition


@pytest.mark.parametrize("status", sorted(RETRYABLE))
async def test_a_retried_job_is_pending_now(store: Store, clock: ManualClock, status: Status) -> None:
    id_ = await put(store, status)
    clock.advance(SECOND)
    assert await store.operator.retry([id_]) == [Transition(id_, Status.PENDING, done=True)]
    found = await look(store, id_)
    assert (found.status, found.reason, found.run_at) == (Status.PENDING, None, to_datetime(clock.wall()))
    assert (found.finished_at, found.result, found.worker, found.claimed_at) == (None, None, None, None)


@pytest.mark.parametrize("status", sorted(set(Status) - RETRYABLE))
async def test_other_jobs_are_refused_and_unchanged(store: Store, status: Status) -> None:
    id_ = await put(store, status)
    before = await look(store, id_)
    assert await store.operator.retry([id_]) == [Transition(id_, status, done=False)]
    assert await look(store, id_) == before


@pytest.mark.parametrize("status", sorted(RETRYABLE))
async def test_the_attempt_goes_on_and_the_history_is_kept(store: Store, status: Status) -> None:
    id_ = await put(store, status, type="t")
    before = await look(store, id_)
    assert before.attempt == 1
    await store.operator.retry([id_])
    await open_lease(store)
    assert (await claim_one(store)).attempt == 2
    after = await look(store, id_)
    assert after.attempts[:-1] == before.attempts
    assert (after.attempts[-1].attempt, after.attempts[-1].outcome) == (2, "running")


async def test_the_history_survives_several_lives(store: Store) -> None:
    job = await running(store)
    for _ in range(3):
        await settle(store, completed(job))
        await store.operator.retry([job.id])
        job = await claim_one(store)
    await settle(store, completed(job))
    found = await look(store, job.id)
    assert [(each.attempt, each.outcome) for each in found.attempts] == [(n, "completed") for n in (1, 2, 3, 4)]


async def test_the_budget_starts_anew_for_failures(store: Store) -> None:
    job = await running(store, max_attempts=1)
    await settle(store, failed(job))
    assert await status_of(store, job.id) is Status.DEAD
    await store.operator.retry([job.id])
    found = await look(store, job.id)
    assert (found.failures, found.max_attempts) == (0, 1)


async def test_the_budget_starts_anew_for_crashes(store: Store) -> None:
    job = await running(store, max_attempts=1)
    await store.leases.end(RunnerEnd(runner="r1", started=frozenset({(job.id, 1)}), crashed=True))
    assert (await look(store, job.id)).crashes == 1
    await store.operator.retry([job.id])
    assert (await look(store, job.id)).crashes == 0


async def test_a_failed_job_need_not_wait_and_has_its_budget_anew(store: Store) -> None:
    id_ = await put(store, Status.FAILED, type="t", max_attempts=2)
    await store.operator.retry([id_])
    assert (await look(store, id_)).failures == 0
    await open_lease(store)
    assert await claim_ids(store) == [id_]


async def test_a_retried_job_queues_up_behind_those_that_wait(store: Store, clock: ManualClock) -> None:
    old = await put(store, Status.DEAD, type="t")
    waits = await enqueue_one(store)
    clock.advance(1)
    await store.operator.retry([old])
    await open_lease(store)
    assert await claim_ids(store) == [waits, old]


@pytest.mark.parametrize("status", sorted(FINISHED))
async def test_a_retry_takes_its_key_again(store: Store, status: Status) -> None:
    id_ = await put(store, status, idempotency_key="k")
    await store.operator.retry([id_])
    assert await store.jobs.enqueue([new_job(idempotency_key="k")]) == [Enqueued(id_, existing=True)]


@pytest.mark.parametrize("status", sorted(FINISHED))
async def test_a_retry_is_refused_while_another_job_holds_the_key(store: Store, status: Status) -> None:
    id_ = await put(store, status, idempotency_key="k")
    holder = await enqueue_one(store, idempotency_key="k")
    before = await look(store, id_)
    assert await store.operator.retry([id_]) == [Transition(id_, status, done=False, holder=holder)]
    assert await look(store, id_) == before
    await store.operator.cancel([holder], "")
    assert await store.operator.retry([id_]) == [Transition(id_, Status.PENDING, done=True)]


async def test_of_two_that_share_a_key_one_is_retried(store: Store) -> None:
    first = await put(store, Status.DEAD, idempotency_key="k")
    second = await put(store, Status.DEAD, idempotency_key="k")
    assert await store.operator.retry([first, second]) == [
        Transition(first, Status.PENDING, done=True),
        Transition(second, Status.DEAD, done=False, holder=first),
    ]


async def test_a_job_that_is_not_there_is_answered_with_none(store: Store) -> None:
    assert await store.operator.retry([new_job().id]) == [None]
