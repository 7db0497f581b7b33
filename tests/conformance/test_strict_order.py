"""Strict order per key: one after the other as they are due, through retries too, whatever their priorities."""

from collections.abc import Callable
from typing import Any

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
from tests.support.seed import WAIT, completed, failed, look, new_job, settle, snoozed, status_of, worker_info
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Claimed
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Transition


async def in_order(store: Store, jobs: int, **fields: Any) -> list[JobId]:
    """Several of a strict key, enqueued together."""
    return await enqueue_with_key(store, jobs, key_strict=True, **fields)


async def test_priority_is_ignored(store: Store, clock: ManualClock) -> None:
    ids = []
    for priority in (0, 5, -3, 9):
        ids += await in_order(store, 1, priority=priority)
        clock.advance(SECOND)
    assert await drain(store) == ids


async def test_of_one_bulk_the_lowest_id_goes_first(store: Store) -> None:
    jobs = [new_job(concurrency_key="k", key_strict=True, priority=n) for n in range(5)]
    await store.jobs.enqueue(jobs[::-1])
    assert await drain(store) == [job.id for job in jobs]


async def test_the_order_is_that_of_being_due(store: Store, clock: ManualClock) -> None:
    late, soon = (await in_order(store, 1, delay=9 * SECOND)) + (await in_order(store, 1, delay=3 * SECOND))
    now = await in_order(store, 1)
    clock.advance(10 * SECOND)
    await store.jobs.admit(10)
    assert await drain(store) == [*now, soon, late]


async def test_one_that_is_not_due_delays_no_other(store: Store) -> None:
    await in_order(store, 1, delay=DAY)
    ids = await in_order(store, 2)
    assert await drain(store) == ids


@pytest.mark.parametrize("exit_", RUNNING_EXITS)
async def test_a_running_holder_leaves(store: Store, clock: ManualClock, exit_: str) -> None:
    leaving = RUNNING_EXITS[exit_]
    first, *behind = await in_order(store, 3, max_attempts=10)
    (job,) = await take(store)
    assert job.id == first
    await leaving.leave(store, clock, job)
    assert await may_run(store, behind) == (behind[:1] if leaving.frees_strict else [])


@pytest.mark.parametrize("exit_", [name for name, leaving in RUNNING_EXITS.items() if not leaving.frees_strict])
async def test_no_job_overtakes_one_that_will_run_again(store: Store, clock: ManualClock, exit_: str) -> None:
    ids = await in_order(store, 3)
    (job,) = await take(store)
    await RUNNING_EXITS[exit_].leave(store, clock, job)
    clock.advance(DAY)
    await store.jobs.admit(10)
    assert await drain(store) == ids


async def test_through_all_its_retries_until_it_is_dead(store: Store, clock: ManualClock) -> None:
    first, second = await in_order(store, 2, max_attempts=3)
    for attempt in (1, 2, 3):
        (job,) = await take(store, f"r{attempt}")
        assert (job.id, job.attempt) == (first, attempt)
        await settle(store, failed(job))
        clock.advance(WAIT)
        await store.jobs.admit(10)
    assert await status_of(store, first) is Status.DEAD
    assert await drain(store) == [second]


async def test_a_job_that_waits_to_be_tried_again_is_not_in_the_way_of_other_keys(store: Store) -> None:
    await in_order(store, 2)
    (job,) = await take(store)
    await settle(store, failed(job))
    other = await enqueue_with_key(store, 2, "other", key_strict=True)
    assert await drain(store) == other


async def test_new_jobs_come_behind_a_failed_one(store: Store, clock: ManualClock) -> None:
    (first,) = await in_order(store, 1)
    (job,) = await take(store)
    await settle(store, failed(job))
    later = await in_order(store, 2, priority=9)
    assert await drain(store) == []
    clock.advance(WAIT)
    await store.jobs.admit(10)
    assert await drain(store) == [first, *later]


@pytest.mark.parametrize("ending", [failed, snoozed], ids=["failed", "snoozed"])
@pytest.mark.parametrize("exit_", WAITING_EXITS)
async def test_a_holder_that_waits_to_be_tried_again_gives_way(
    store: Store, clock: ManualClock, exit_: str, ending: Callable[[Claimed], Settlement]
) -> None:
    give_way, frees = WAITING_EXITS[exit_]
    (first,) = await in_order(store, 1, expires=DAY, idempotency_key="first")
    behind = await in_order(store, 2)
    (job,) = await take(store)
    assert job.id == first
    await settle(store, ending(job))
    await give_way(store, clock, first)
    assert await may_run(store, behind) == (behind[:1] if frees else [])


@pytest.mark.parametrize("exit_", WAITING_EXITS)
async def test_a_pending_holder_gives_way(store: Store, clock: ManualClock, exit_: str) -> None:
    give_way, frees = WAITING_EXITS[exit_]
    (first,) = await in_order(store, 1, expires=DAY, idempotency_key="first")
    behind = await in_order(store, 2)
    assert await may_run(store, [first, *behind]) == [first]
    await give_way(store, clock, first)
    assert await may_run(store, behind) == (behind[:1] if frees else [])


@pytest.mark.parametrize("verb", ["retry", "run_now", "change"])
async def test_a_failed_holder_that_need_not_wait_any_longer_goes_on(
    store: Store, clock: ManualClock, verb: str
) -> None:
    ids = await in_order(store, 2)
    (job,) = await take(store)
    await settle(store, failed(job))
    clock.advance(SECOND)
    if verb == "change":
        moved = await store.operator.change([ids[0]], JobChange(delay=0))
    else:
        moved = await (store.operator.retry if verb == "retry" else store.operator.run_now)([ids[0]])
    assert moved == [Transition(ids[0], Status.PENDING, done=True)]
    assert await drain(store) == ids


async def test_a_pending_holder_that_is_due_anyway_keeps_its_place(store: Store, clock: ManualClock) -> None:
    ids = await in_order(store, 2)
    await look_again(store)
    clock.advance(SECOND)
    assert await store.operator.change(ids[:1], JobChange(delay=0)) == [Transition(ids[0], Status.PENDING, done=True)]
    assert await drain(store) == ids


async def test_a_failed_holder_that_is_postponed_comes_last_when_it_is_due(store: Store, clock: ManualClock) -> None:
    first, second = await in_order(store, 2)
    (job,) = await take(store)
    await settle(store, failed(job))
    await store.operator.change([first], JobChange(delay=DAY))
    (running,) = await take(store)
    assert running.id == second
    clock.advance(DAY)
    await store.jobs.admit(10)
    assert (await look(store, first)).reason == "waits for its concurrency key"


async def test_a_retried_dead_job_comes_last(store: Store, clock: ManualClock) -> None:
    ids = await in_order(store, 3, max_attempts=1)
    (job,) = await take(store)
    await settle(store, failed(job))
    clock.advance(SECOND)
    await store.operator.retry([ids[0]])
    assert await drain(store) == [ids[1], ids[2], ids[0]]


async def test_a_parked_holder_keeps_its_place(store: Store) -> None:
    (strange,) = await in_order(store, 1, type="strange")
    (known,) = await in_order(store, 1, type="known")
    await park_all(store)
    assert (await look(store, strange)).reason == "no worker for type"
    assert await may_run(store, [strange, known]) == []
    await store.workers.beat(worker_info(types=("known", "strange")))
    assert await drain(store, types=("known", "strange")) == [strange, known]


@pytest.mark.parametrize("exit_", ["cancelled", "expired", "moved to another queue", "postponed"])
async def test_a_parked_holder_gives_way(store: Store, clock: ManualClock, exit_: str) -> None:
    (strange,) = await in_order(store, 1, type="strange", expires=DAY)
    (known,) = await in_order(store, 1, type="known")
    await park_all(store)
    await WAITING_EXITS[exit_][0](store, clock, strange)
    assert await may_run(store, [known]) == [known]


async def test_a_snoozed_holder_that_is_cancelled_lets_one_go_on_not_two(store: Store) -> None:
    ids = await in_order(store, 3)
    (job,) = await take(store)
    await settle(store, snoozed(job))
    await store.operator.cancel([ids[0]], "")
    await store.operator.cancel([ids[0]], "")
    assert await may_run(store, ids) == ids[1:2]


async def test_strict_order_with_a_limit_starts_in_order(store: Store) -> None:
    ids = await in_order(store, 5, key_limit=2)
    first, second = await take(store)
    assert [first.id, second.id] == ids[:2]
    await settle(store, failed(first))
    assert await may_run(store, ids[2:]) == [], "the failed one has kept its slot"
    await settle(store, completed(second))
    await look_again(store)
    assert await may_run(store, ids[2:]) == ids[2:3]
