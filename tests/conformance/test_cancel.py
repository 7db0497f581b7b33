"""cancel: waiting jobs end now, running ones are asked to stop."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, enqueue_one, look, new_job, open_lease, put, running, status_of
from windlass.client.verbs.links import cause_of
from windlass.core.flow.queue import QueueSettings
from windlass.core.moments import SECOND, to_datetime
from windlass.core.status import FINISHED, WAITING, Status
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd, Transition


@pytest.mark.parametrize("status", sorted(WAITING))
async def test_a_waiting_job_is_cancelled_at_once(store: Store, clock: ManualClock, status: Status) -> None:
    id_ = await put(store, status)
    clock.advance(SECOND)
    assert await store.operator.cancel([id_], "no longer needed") == [Transition(id_, Status.CANCELLED, done=True)]
    found = await look(store, id_)
    assert (found.status, found.reason) == (Status.CANCELLED, "no longer needed")
    assert found.finished_at == to_datetime(clock.wall())


async def test_a_cancelled_job_is_not_claimed(store: Store) -> None:
    id_ = await put(store, Status.PENDING, type="t")
    await store.operator.cancel([id_], "")
    await open_lease(store)
    assert await claim_ids(store) == []


async def test_a_running_job_is_asked_to_stop(store: Store) -> None:
    job = await running(store)
    for _ in range(2):
        assert await store.operator.cancel([job.id], "stop") == [Transition(job.id, Status.RUNNING, done=True)]
    found = await look(store, job.id)
    assert (found.status, found.cancel_requested) == (Status.RUNNING, True)


@pytest.mark.parametrize("status", sorted(FINISHED))
async def test_a_finished_job_stays_as_it_is(store: Store, status: Status) -> None:
    id_ = await put(store, status)
    before = await look(store, id_)
    assert await store.operator.cancel([id_], "too late") == [Transition(id_, status, done=False)]
    assert await look(store, id_) == before


async def test_the_history_of_a_failed_job_is_kept(store: Store) -> None:
    id_ = await put(store, Status.FAILED)
    before = await look(store, id_)
    await store.operator.cancel([id_], "")
    after = await look(store, id_)
    assert (after.attempts, after.error, after.attempt) == (before.attempts, before.error, before.attempt)


async def test_each_job_of_a_batch_is_answered_for_itself(store: Store) -> None:
    waits, done = await put(store, Status.PENDING), await put(store, Status.COMPLETED)
    answers = await store.operator.cancel([new_job().id, waits, done], "")
    assert answers == [
        None,
        Transition(waits, Status.CANCELLED, done=True),
        Transition(done, Status.COMPLETED, done=False),
    ]


async def test_a_cancelled_job_that_is_not_kept_is_gone(store: Store) -> None:
    await store.queues.change("default", QueueSettings(retention={Status.CANCELLED: 0}))
    id_ = await put(store, Status.PENDING)
    assert await store.operator.cancel([id_], "") == [Transition(id_, Status.CANCELLED, done=True)]
    assert await store.operator.get([id_]) == [None]


async def test_a_job_retried_after_a_cancellation_is_not_asked_to_stop_again(store: Store) -> None:
    job = await running(store)
    await store.operator.cancel([job.id], "")
    await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=False))
    await store.operator.retry([job.id])
    assert (await look(store, job.id)).cancel_requested is False
    assert await status_of(store, job.id) is Status.PENDING


@pytest.mark.parametrize("reason", ["its node is drained", "its member left the team", "its parent process is dead"])
async def test_an_operators_reason_is_not_taken_for_the_id_of_another_job(store: Store, reason: str) -> None:
    id_ = await enqueue_one(store)
    await store.operator.cancel([id_], reason)
    assert await cause_of(store.operator, await look(store, id_)) is None
