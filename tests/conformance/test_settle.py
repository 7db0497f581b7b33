"""settle: every outcome, recorded once; a stale one changes nothing."""

import msgspec
import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    ENDINGS,
    WAIT,
    cancelled,
    claim_ids,
    claim_one,
    completed,
    dead,
    enqueue,
    enqueue_one,
    failed,
    let_lapse,
    look,
    open_lease,
    request,
    requeued,
    running,
    settle,
    snoozed,
    status_of,
)
from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.job import JobError
from windlass.core.moments import SECOND, to_datetime
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Note, Settled

KEYS = pytest.mark.parametrize("key", [None, "k"], ids=["without a key", "with a key"])
"""Jobs with a key take another path through some stores; nothing else may differ."""


@KEYS
async def test_completed_keeps_the_result_and_ends_the_job(store: Store, clock: ManualClock, key: str | None) -> None:
    job = await running(store, idempotency_key=key)
    clock.advance(SECOND)
    assert await settle(store, completed(job, '{"sum": 3}')) is Settled.SETTLED
    found = await look(store, job.id)
    assert (found.status, found.result, found.finished_at) == (
        Status.COMPLETED,
        {"sum": 3},
        to_datetime(clock.wall()),
    )
    assert (found.attempt, found.failures, found.finished) == (1, 0, True)
    assert [(a.attempt, a.outcome, a.worker, a.ended_at) for a in found.attempts] == [
        (1, "completed", "r1", found.finished_at)
    ]


@KEYS
async def test_completed_without_a_result(store: Store, key: str | None) -> None:
    job = await running(store, idempotency_key=key)
    await settle(store, completed(job, None))
    assert (await look(store, job.id)).result is None


async def test_failed_waits_for_its_next_attempt(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    assert await settle(store, failed(job, "no luck")) is Settled.SETTLED
    found = await look(store, job.id)
    assert (found.status, found.failures, found.error) == (Status.FAILED, 1, JobError("ValueError", "no luck"))
    assert found.run_at == to_datetime(clock.wall() + WAIT)
    assert (found.worker, found.claimed_at, found.started_at) == (None, None, None)


async def test_the_last_failure_of_the_budget_is_dead(store: Store, clock: ManualClock) -> None:
    job = await running(store, max_attempts=2)
    await settle(store, failed(job))
    clock.advance(WAIT)
    await store.jobs.admit(1)
    await open_lease(store, "r2")
    await settle(store, failed(await claim_one(store, "r2")))
    found = await look(store, job.id)
    assert (found.status, found.failures, found.reason) == (Status.DEAD, 2, "failed 2 of 2 attempts")


async def test_dead_keeps_reason_and_error(store: Store) -> None:
    job = await running(store)
    await settle(store, dead(job, "hopeless"))
    found = await look(store, job.id)
    assert (found.status, found.reason, found.failures) == (Status.DEAD, "hopeless", 1)
    assert found.error == JobError("Dead", "hopeless")


async def test_cancelled_keeps_the_reason(store: Store) -> None:
    job = await running(store)
    await settle(store, cancelled(job, "too late"))
    found = await look(store, job.id)
    assert (found.status, found.reason, found.failures) == (Status.CANCELLED, "too late", 0)


async def test_snoozed_comes_back_without_using_up_its_budget(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    await settle(store, snoozed(job, 5))
    found = await look(store, job.id)
    assert (found.status, found.snoozes, found.failures) == (Status.SCHEDULED, 1, 0)
    assert found.run_at == to_datetime(clock.wall() + 5 * SECOND)


async def test_requeued_is_pending_at_its_old_rank_and_budget(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    clock.advance(SECOND)
    await enqueue_one(store)
    await settle(store, requeued(job))
    found = await look(store, job.id)
    assert (found.status, found.requeues, found.failures) == (Status.PENDING, 1, 0)
    assert (await claim_ids(store))[0] == job.id


async def test_requeued_with_a_pause_is_scheduled_and_its_budget_is_untouched(
    store: Store, clock: ManualClock
) -> None:
    job = await running(store)
    await settle(store, msgspec.structs.replace(requeued(job), status=Status.SCHEDULED, delay=5 * SECOND))
    found = await look(store, job.id)
    assert (found.status, found.requeues, found.snoozes, found.failures) == (Status.SCHEDULED, 1, 0, 0)
    assert found.run_at == to_datetime(clock.wall() + 5 * SECOND)


@KEYS
async def test_a_completion_after_a_failure_clears_the_error_but_not_the_history(
    store: Store, clock: ManualClock, key: str | None
) -> None:
    job = await running(store, idempotency_key=key)
    await settle(store, failed(job, "first try"))
    clock.advance(WAIT)
    await store.jobs.admit(1)
    await open_lease(store, "r2")
    await settle(store, completed(await claim_one(store, "r2")))
    found = await look(store, job.id)
    assert found.error is None
    assert [(a.attempt, a.outcome, a.worker) for a in found.attempts] == [(1, "failed", "r1"), (2, "completed", "r2")]
    assert found.attempts[0].error == JobError("ValueError", "first try")


@KEYS
async def test_a_start_that_was_noted_is_kept_by_the_settlement(
    store: Store, clock: ManualClock, key: str | None
) -> None:
    job = await running(store, idempotency_key=key)
    await store.jobs.note([Note(id=job.id, queue=job.queue, attempt=1, started_after=7)])
    await settle(store, completed(job))
    assert (await look(store, job.id)).started_at == to_datetime(clock.wall() + 7)


@pytest.mark.parametrize("outcome", sorted(ENDINGS))
async def test_a_settlement_of_another_attempt_is_stale_and_changes_nothing(store: Store, outcome: str) -> None:
    job = await running(store)
    await settle(store, requeued(job))
    newer = await claim_one(store)
    before = await look(store, job.id)
    if outcome != "requeued":
        assert await settle(store, ENDINGS[outcome](job)) is Settled.STALE
    assert await look(store, job.id) == before
    assert await settle(store, completed(newer)) is Settled.SETTLED


@pytest.mark.parametrize("outcome", sorted(ENDINGS))
@KEYS
async def test_the_same_settlement_again_is_answered_already_and_changes_nothing(
    store: Store, outcome: str, key: str | None
) -> None:
    job = await running(store, idempotency_key=key)
    settlement = ENDINGS[outcome](job)
    assert await settle(store, settlement) is Settled.SETTLED
    before = await look(store, job.id)
    assert await settle(store, settlement) is Settled.ALREADY
    assert await look(store, job.id) == before


@pytest.mark.parametrize("outcome", ["completed", "dead", "cancelled"])
async def test_a_repeat_is_known_when_the_job_is_not_kept(store: Store, outcome: str) -> None:
    nothing = dict.fromkeys((Status.COMPLETED, Status.DEAD, Status.CANCELLED), 0)
    await store.queues.change("default", QueueSettings(retention=nothing))
    job = await running(store)
    settlement = ENDINGS[outcome](job)
    assert await settle(store, settlement) is Settled.SETTLED
    assert await store.operator.get([job.id]) == [None]
    assert await settle(store, settlement) is Settled.ALREADY


async def test_an_older_attempt_is_stale_also_when_the_job_is_not_kept(store: Store) -> None:
    await store.queues.change("default", QueueSettings(retention={Status.COMPLETED: 0}))
    old = await running(store)
    await settle(store, requeued(old))
    await settle(store, completed(await claim_one(store)))
    assert await settle(store, completed(old)) is Settled.STALE


async def test_a_repeat_is_known_after_the_job_was_claimed_again(store: Store) -> None:
    job = await running(store)
    await settle(store, requeued(job))
    await claim_one(store)
    assert await settle(store, requeued(job)) is Settled.ALREADY


async def test_a_repeat_is_known_after_a_person_retried_the_job(store: Store) -> None:
    job = await running(store)
    await settle(store, completed(job))
    await store.operator.retry([job.id])
    assert await settle(store, completed(job)) is Settled.ALREADY
    assert await status_of(store, job.id) is Status.PENDING


async def test_another_outcome_for_a_settled_attempt_is_stale(store: Store) -> None:
    job = await running(store)
    await settle(store, completed(job))
    assert await settle(store, failed(job)) is Settled.STALE
    assert await status_of(store, job.id) is Status.COMPLETED


async def test_a_job_that_never_was_is_stale(store: Store) -> None:
    job = await running(store)
    await settle(store, completed(job))
    await store.operator.delete([job.id])
    assert await settle(store, failed(job)) is Settled.STALE


@pytest.mark.parametrize("outcome", sorted(ENDINGS))
async def test_after_a_rescue_the_old_holder_is_stale_even_before_anyone_claims(
    store: Store, clock: ManualClock, outcome: str
) -> None:
    job = await running(store)
    await let_lapse(store, clock)
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]
    before = await look(store, job.id)
    assert await settle(store, ENDINGS[outcome](job)) is Settled.STALE
    assert await look(store, job.id) == before


@pytest.mark.parametrize("outcome", ["failed", "snoozed", "requeued"])
async def test_a_job_that_was_asked_to_stop_does_not_run_again(store: Store, outcome: str) -> None:
    job = await running(store)
    await store.operator.cancel([job.id], "stop it")
    settlement = ENDINGS[outcome](job)
    assert await settle(store, settlement) is Settled.SETTLED
    found = await look(store, job.id)
    assert (found.status, found.cancel_requested) == (Status.CANCELLED, True)
    assert await settle(store, settlement) is Settled.ALREADY


@pytest.mark.parametrize("outcome", ["completed", "dead", "cancelled"])
async def test_a_job_that_ended_before_it_could_stop_ends_as_it_ended(store: Store, outcome: str) -> None:
    job = await running(store)
    await store.operator.cancel([job.id], "stop it")
    await settle(store, ENDINGS[outcome](job))
    assert await status_of(store, job.id) == outcome


async def test_the_history_of_attempts_is_bounded_and_keeps_the_newest(store: Store) -> None:
    job = await running(store)
    for _ in range(60):
        await settle(store, requeued(job))
        job = await claim_one(store)
    await settle(store, completed(job))
    found = await look(store, job.id)
    numbers = [each.attempt for each in found.attempts]
    assert (found.attempt, found.requeues) == (61, 60)
    assert numbers == list(range(62 - len(numbers), 62))
    assert 10 <= len(numbers) <= 60


async def test_one_stale_item_does_not_hurt_the_others_of_its_batch(store: Store) -> None:
    ids = await enqueue(store, 6)
    await open_lease(store)
    jobs = await store.jobs.claim(request())
    await settle(store, requeued(jobs[0]))
    batch = [completed(jobs[0]), *(make(job) for make, job in zip(list(ENDINGS.values())[:5], jobs[1:], strict=True))]
    assert await store.jobs.settle(batch) == [Settled.STALE, *[Settled.SETTLED] * 5]
    statuses = [await status_of(store, id_) for id_ in ids]
    assert statuses == ["pending", "completed", "failed", "dead", "cancelled", "scheduled"]


async def test_a_settlement_twice_in_a_batch_counts_once(store: Store) -> None:
    job = await running(store)
    assert await store.jobs.settle([completed(job), completed(job)]) == [Settled.SETTLED, Settled.ALREADY]
    assert (await store.operator.counts()).totals["completed"] == 1


async def test_nothing_settled_is_answered_with_nothing(store: Store) -> None:
    assert await store.jobs.settle([]) == []
