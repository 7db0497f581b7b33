"""Every way in which a job leaves its slot: the key is free at the right moment, and not before."""

import pytest

from tests.support.clock import ManualClock
from tests.support.key_queues import (
    RUNNING_EXITS,
    WAITING_EXITS,
    drain,
    enqueue_with_key,
    look_again,
    may_run,
    park_all,
    take,
)
from tests.support.seed import claim_ids, completed, failed, look, open_lease, settle, status_of, worker_info
from windlass.core.jobs.change import JobChange
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Transition


@pytest.mark.parametrize("exit_", RUNNING_EXITS)
async def test_a_running_holder_leaves(store: Store, clock: ManualClock, exit_: str) -> None:
    leaving = RUNNING_EXITS[exit_]
    first, second, third = await enqueue_with_key(store, 3, max_attempts=10)
    (other,) = await enqueue_with_key(store, 1, "another", type="other")
    (job,) = await take(store)
    assert await may_run(store, [first, second, third]) == [first], "not before"
    await leaving.leave(store, clock, job)
    assert await may_run(store, [second, third]) == ([second] if leaving.frees else [])
    assert await status_of(store, other) is Status.PENDING, "jobs of other keys are untouched"


@pytest.mark.parametrize("exit_", [name for name, leaving in RUNNING_EXITS.items() if not leaving.frees])
async def test_a_job_that_keeps_its_slot_runs_before_those_behind_it(
    store: Store, clock: ManualClock, exit_: str
) -> None:
    ids = await enqueue_with_key(store, 3)
    (job,) = await take(store)
    await RUNNING_EXITS[exit_].leave(store, clock, job)
    assert await drain(store) == ids


@pytest.mark.parametrize("exit_", WAITING_EXITS)
async def test_a_waiting_holder_gives_way(store: Store, clock: ManualClock, exit_: str) -> None:
    give_way, frees = WAITING_EXITS[exit_]
    (first,) = await enqueue_with_key(store, expires=DAY, idempotency_key="first")
    behind = await enqueue_with_key(store, 2)
    assert await may_run(store, [first, *behind]) == [first]
    await give_way(store, clock, first)
    assert await may_run(store, behind) == (behind[:1] if frees else [])


@pytest.mark.parametrize("exit_", WAITING_EXITS)
async def test_a_waiting_job_that_leaves_frees_no_key_slot(store: Store, clock: ManualClock, exit_: str) -> None:
    (first,) = await enqueue_with_key(store)
    (second,) = await enqueue_with_key(store, expires=DAY, idempotency_key="first")
    (third,) = await enqueue_with_key(store)
    await look_again(store)
    await WAITING_EXITS[exit_][0](store, clock, second)
    assert await may_run(store, [first, third]) == [first]


@pytest.mark.parametrize("exit_", ["cancelled", "expired", "replaced", "moved to another queue", "postponed"])
async def test_when_the_first_that_waits_leaves_the_next_brings_its_own_limit(
    store: Store, clock: ManualClock, exit_: str
) -> None:
    (holder,) = await enqueue_with_key(store)
    (narrow,) = await enqueue_with_key(store, expires=DAY, idempotency_key="first")
    (wide,) = await enqueue_with_key(store, key_limit=2)
    assert await may_run(store, [holder, narrow, wide]) == [holder]
    await WAITING_EXITS[exit_][0](store, clock, narrow)
    assert await may_run(store, [holder, wide]) == [holder, wide]


async def test_a_whole_key_queue_is_cancelled_at_once(store: Store) -> None:
    ids = await enqueue_with_key(store, 20)
    others = await enqueue_with_key(store, 2, "other")
    await store.operator.cancel([*ids, ids[0]], "purged")
    assert [await status_of(store, id_) for id_ in ids] == [Status.CANCELLED] * 20
    assert await drain(store) == others


async def test_a_key_is_free_after_a_purge(store: Store) -> None:
    await store.operator.cancel(await enqueue_with_key(store, 5), "purged")
    ids = await enqueue_with_key(store, 2)
    assert await may_run(store, ids) == ids[:1]


async def test_a_failed_job_waits_for_its_key_again_when_it_is_due(store: Store, clock: ManualClock) -> None:
    first, second = await enqueue_with_key(store, 2)
    (job,) = await take(store)
    await settle(store, failed(job))
    (running,) = await take(store)
    clock.advance(DAY)
    await open_lease(store, "r2")
    await store.jobs.admit(10)
    assert (await look(store, first)).reason == "waits for its concurrency key"
    assert await claim_ids(store, "r2") == []
    assert running.id == second


@pytest.mark.parametrize("verb", ["retry", "run_now", "change"])
async def test_a_failed_job_that_need_not_wait_any_longer_waits_for_its_key(store: Store, verb: str) -> None:
    first, second = await enqueue_with_key(store, 2)
    (job,) = await take(store)
    await settle(store, failed(job))
    (running,) = await take(store)
    assert await _bring_forward(store, verb, first) == [Transition(first, Status.BLOCKED, done=True)]
    assert (await look(store, first)).reason == "waits for its concurrency key"
    await settle(store, completed(running))
    assert (running.id, await drain(store)) == (second, [first])


@pytest.mark.parametrize("verb", ["retry", "run_now", "change"])
async def test_a_failed_job_whose_key_is_free_need_not_wait_for_it(store: Store, verb: str) -> None:
    (id_,) = await enqueue_with_key(store)
    (job,) = await take(store)
    await settle(store, failed(job))
    (moved,) = await _bring_forward(store, verb, id_)
    assert moved is not None
    assert (moved.done, moved.status) in ((True, Status.PENDING), (True, Status.BLOCKED))
    assert await drain(store) == [id_]


async def _bring_forward(store: Store, verb: str, id_: str) -> list[Transition | None]:
    if verb == "retry":
        return await store.operator.retry([id_])
    if verb == "run_now":
        return await store.operator.run_now([id_])
    return await store.operator.change([id_], JobChange(delay=0))


@pytest.mark.parametrize("exit_", ["completed", "dead", "cancelled"])
async def test_a_finished_job_that_is_retried_waits_for_its_key(store: Store, clock: ManualClock, exit_: str) -> None:
    first, second, third = await enqueue_with_key(store, 3)
    (job,) = await take(store)
    await RUNNING_EXITS[exit_].leave(store, clock, job)
    clock.advance(SECOND)
    await look_again(store)
    assert await store.operator.retry([first]) == [Transition(first, Status.BLOCKED, done=True)]
    assert await drain(store) == [second, third, first]


async def test_a_scheduled_job_that_is_to_run_now_waits_for_its_key(store: Store) -> None:
    holder = await enqueue_with_key(store)
    (later,) = await enqueue_with_key(store, delay=DAY)
    await look_again(store)
    assert await store.operator.run_now([later]) == [Transition(later, Status.BLOCKED, done=True)]
    assert await store.operator.run_now([later]) == [Transition(later, Status.BLOCKED, done=False)]
    assert await drain(store) == [*holder, later]


async def test_a_job_that_moves_waits_for_the_key_in_its_new_queue(store: Store) -> None:
    there = await enqueue_with_key(store, queue="other")
    here = await enqueue_with_key(store, 2)
    await look_again(store)
    assert await store.operator.change(here, JobChange(queue="other")) == [
        Transition(id_, Status.BLOCKED, done=True) for id_ in here
    ]
    assert await drain(store, queues=("other",)) == [*there, *here]
    assert (await store.operator.counts()).queues.get("default", {}).get("blocked", 0) == 0


async def test_a_waiting_job_moves_to_a_queue_where_its_key_is_free(store: Store) -> None:
    ids = await enqueue_with_key(store, 2)
    await look_again(store)
    await store.operator.change([ids[1]], JobChange(queue="other"))
    assert await may_run(store, ids) == ids


async def test_a_job_that_waits_for_its_key_and_is_postponed_waits_for_its_time(
    store: Store, clock: ManualClock
) -> None:
    first, second = await enqueue_with_key(store, 2)
    await look_again(store)
    assert await store.operator.change([second], JobChange(delay=5 * SECOND)) == [
        Transition(second, Status.SCHEDULED, done=True)
    ]
    assert (await look(store, second)).reason is None
    assert await drain(store) == [first]
    clock.advance(5 * SECOND)
    await store.jobs.admit(10)
    assert await drain(store) == [second]


async def test_a_new_priority_moves_a_waiting_job_up(store: Store) -> None:
    first, second, third = await enqueue_with_key(store, 3)
    await look_again(store)
    await store.operator.change([third], JobChange(priority=1))
    assert await drain(store) == [first, third, second]


async def test_a_parked_holder_frees_its_key_slot_and_waits_again_when_its_type_is_known(store: Store) -> None:
    (strange,) = await enqueue_with_key(store, type="strange")
    (known,) = await enqueue_with_key(store, type="known")
    await park_all(store)
    found = await look(store, strange)
    assert (found.status, found.reason) == (Status.BLOCKED, "no worker for type")
    assert await may_run(store, [strange, known]) == [known]
    await store.workers.beat(worker_info(types=("known", "strange")))
    await look_again(store)
    assert (await look(store, strange)).reason == "waits for its concurrency key"
    assert await drain(store, types=("known", "strange")) == [known, strange]


async def test_a_parked_job_whose_key_is_free_runs_when_its_type_is_known(store: Store) -> None:
    (strange,) = await enqueue_with_key(store, type="strange")
    await park_all(store)
    await store.workers.beat(worker_info(types=("strange",)))
    assert await drain(store, types=("strange",)) == [strange]


async def test_expired_jobs_that_wait_for_a_key_are_cleared_and_those_behind_go_on(
    store: Store, clock: ManualClock
) -> None:
    expiring = await enqueue_with_key(store, 5, expires=SECOND)
    (last,) = await enqueue_with_key(store)
    await look_again(store)
    clock.advance(SECOND)
    assert [job.id for job in await take(store)] in ([last], [])
    await store.jobs.expire(100)
    assert [await status_of(store, id_) for id_ in expiring] == [Status.CANCELLED] * 5
    assert await may_run(store, [last]) == [last]


async def test_a_deleted_job_frees_no_slot_of_another(store: Store) -> None:
    ids = await enqueue_with_key(store, 3)
    (job,) = await take(store)
    await settle(store, completed(job))
    await look_again(store)
    assert await store.operator.delete([ids[0]]) == [Transition(ids[0], Status.COMPLETED, done=True)]
    assert await may_run(store, ids[1:]) == ids[1:2]
