"""Concurrency keys: at most so many with one key run, whatever else there is."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from tests.support.clock import ManualClock
from tests.support.key_queues import drain, enqueue_with_key, look_again, may_run, take
from tests.support.seed import completed, enqueue, enqueue_one, look, new_job, settle, status_of
from windlass.core.flow.rate import Rate
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Enqueued
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store


async def test_one_runs_unless_a_limit_says_otherwise(store: Store) -> None:
    ids = await enqueue_with_key(store, 3)
    assert [job.id for job in await take(store)] == ids[:1]
    assert await take(store, "r2") == []


async def test_those_behind_are_blocked_and_say_why(store: Store) -> None:
    first, second = await enqueue_with_key(store, 2)
    await look_again(store)
    assert (await look(store, first)).reason is None
    found = await look(store, second)
    assert (found.status, found.reason) == (Status.BLOCKED, "waits for its concurrency key")


async def test_a_limit_of_three_lets_three_run(store: Store) -> None:
    ids = await enqueue_with_key(store, 5, key_limit=3)
    assert [job.id for job in await take(store)] == ids[:3]
    assert await take(store, "r2") == []


async def test_jobs_of_one_bulk_and_of_several_hand_ins_count_alike(store: Store) -> None:
    ids = [(await enqueue_with_key(store, key_limit=2))[0] for _ in range(4)]
    assert await may_run(store, ids) == ids[:2]


async def test_keys_do_not_know_each_other(store: Store) -> None:
    first = await enqueue_with_key(store, 2, "a")
    second = await enqueue_with_key(store, 2, "b")
    assert {job.id for job in await take(store)} == {first[0], second[0]}


async def test_a_key_belongs_to_its_queue(store: Store) -> None:
    here = await enqueue_with_key(store, 2)
    there = await enqueue_with_key(store, 2, queue="other")
    assert {job.id for job in await take(store, queues=("default", "other"))} == {here[0], there[0]}


async def test_jobs_without_a_key_are_in_no_key_queue(store: Store) -> None:
    await enqueue_with_key(store, 2)
    free = await enqueue(store, 5)
    assert set(free) < {job.id for job in await take(store)}


@pytest.mark.parametrize(
    "key", ["", "ключ 🗝", "a" * 1000, "[1]", "1", "null", "with 'quotes' and \"more\" \\ %s :queue"]
)
async def test_a_key_is_any_text(store: Store, key: str) -> None:
    ids = await enqueue_with_key(store, 2, key)
    assert await drain(store) == ids
    assert [(await look(store, id_)).concurrency_key for id_ in ids] == [key, key]


async def test_keys_that_look_alike_are_not(store: Store) -> None:
    ids = [(await enqueue_with_key(store, 1, key))[0] for key in ("k", "K", "k ", "1", "1.0", "01")]
    assert await may_run(store, ids) == ids


async def test_the_next_that_waits_goes_on_when_one_is_done(store: Store) -> None:
    ids = await enqueue_with_key(store, 4, key_limit=2)
    first, second = await take(store)
    await settle(store, completed(first))
    (third,) = await take(store)
    assert third.id == ids[2]
    await store.jobs.settle([completed(second), completed(third)])
    assert [job.id for job in await take(store)] == ids[3:]


async def test_a_batch_of_ends_frees_as_many_slots(store: Store) -> None:
    ids = await enqueue_with_key(store, 10, key_limit=4)
    await store.jobs.settle([completed(job) for job in await take(store)])
    assert await may_run(store, ids[4:]) == ids[4:8]


async def test_a_settlement_that_comes_twice_frees_one_slot(store: Store) -> None:
    ids = await enqueue_with_key(store, 3)
    (job,) = await take(store)
    await settle(store, completed(job))
    await settle(store, completed(job))
    await store.jobs.settle([completed(job), completed(job)])
    assert await may_run(store, ids[1:]) == ids[1:2]


async def test_a_stale_settlement_frees_nothing(store: Store) -> None:
    ids = await enqueue_with_key(store, 2)
    (job,) = await take(store)
    await settle(store, completed(msgspec.structs.replace(job, attempt=job.attempt + 1)))
    assert await may_run(store, ids) == ids[:1]


async def test_jobs_that_wait_for_a_key_go_by_priority_then_by_age(store: Store, clock: ManualClock) -> None:
    (holder,) = await enqueue_with_key(store)
    await look_again(store)
    low, late = await enqueue_with_key(store, 2)
    clock.advance(SECOND)
    (high,) = await enqueue_with_key(store, priority=5)
    assert await drain(store) == [holder, high, low, late]


async def test_the_highest_and_the_lowest_priority_have_their_places_in_a_key_queue(store: Store) -> None:
    (holder,) = await enqueue_with_key(store)
    await look_again(store)
    order = [(await enqueue_with_key(store, priority=priority))[0] for priority in (-32768, -32767, 0, 32766, 32767)]
    assert await drain(store) == [holder, *order[::-1]]


async def test_of_one_bulk_the_highest_priority_goes_first(store: Store) -> None:
    low, high = new_job(concurrency_key="k"), new_job(concurrency_key="k", priority=1)
    await store.jobs.enqueue([low, high])
    assert await drain(store) == [high.id, low.id]


async def test_an_aged_job_ranks_behind_those_that_wait_already(store: Store, clock: ManualClock) -> None:
    first, second = await enqueue_with_key(store, 2)
    clock.advance(SECOND)
    (job,) = await take(store)
    free = await enqueue_one(store)
    clock.advance(SECOND)
    await settle(store, completed(job))
    assert (job.id, [each.id for each in await take(store)]) == (first, [free, second])


async def test_the_first_waiting_job_brings_the_limit(store: Store) -> None:
    one = await enqueue_with_key(store, 1)
    two = await enqueue_with_key(store, 3, key_limit=3)
    assert await may_run(store, one + two) == one + two[:2]


async def test_a_lower_limit_at_the_head_holds_back_those_behind(store: Store) -> None:
    many = await enqueue_with_key(store, 2, key_limit=2)
    narrow = await enqueue_with_key(store, 1)
    wide = await enqueue_with_key(store, 1, key_limit=5)
    jobs = await take(store)
    assert [job.id for job in jobs] == many
    await settle(store, completed(jobs[0]))
    assert await may_run(store, narrow + wide) == [], "one still runs, and the next that waits wants to be alone"
    await settle(store, completed(jobs[1]))
    assert await may_run(store, narrow + wide) == narrow + wide, "and after it one comes that does not mind"


async def test_a_limit_that_rises_with_the_next_waiting_job_admits_several_at_once(store: Store) -> None:
    (holder,) = await enqueue_with_key(store)
    (narrow,) = await enqueue_with_key(store)
    await look_again(store)
    wide = await enqueue_with_key(store, 4, key_limit=3)
    (job,) = await take(store)
    await settle(store, completed(job))
    assert await may_run(store, [holder, narrow, *wide]) == [narrow, *wide[:2]]


async def test_a_new_job_of_higher_priority_with_a_higher_limit_does_not_wait(store: Store) -> None:
    ids = await enqueue_with_key(store, 2)
    await look_again(store)
    (urgent,) = await enqueue_with_key(store, priority=1, key_limit=2)
    assert await may_run(store, [*ids, urgent]) == [ids[0], urgent]


async def test_a_future_job_holds_nothing_and_waits_for_its_key_when_it_is_due(
    store: Store, clock: ManualClock
) -> None:
    (later,) = await enqueue_with_key(store, delay=5 * SECOND)
    (now,) = await enqueue_with_key(store)
    (job,) = await take(store)
    assert job.id == now
    clock.advance(5 * SECOND)
    assert (await store.jobs.admit(10)).next_due_in is None
    assert (await look(store, later)).reason == "waits for its concurrency key"
    await settle(store, completed(job))
    assert await drain(store) == [later]


async def test_a_future_job_whose_key_is_free_runs_when_it_is_due(store: Store, clock: ManualClock) -> None:
    ids = await enqueue_with_key(store, 3, delay=5 * SECOND, key_limit=2)
    clock.advance(5 * SECOND)
    await store.jobs.admit(10)
    assert await may_run(store, ids) == ids[:2]


async def test_known_ids_are_no_second_job_that_waits_for_a_key(store: Store) -> None:
    jobs = [new_job(concurrency_key="k") for _ in range(3)]
    await store.jobs.enqueue(jobs[:2])
    again = await store.jobs.enqueue(jobs)
    assert [each.existing for each in again] == [True, True, False]
    assert await drain(store) == [job.id for job in jobs]


async def test_an_idempotency_key_and_a_concurrency_key_go_together(store: Store) -> None:
    jobs = [new_job(concurrency_key="c", idempotency_key=f"i{n}") for n in range(2)]
    await store.jobs.enqueue(jobs)
    twin = new_job(concurrency_key="c", idempotency_key="i1")
    assert await store.jobs.enqueue([twin]) == [Enqueued(jobs[1].id, existing=True)]
    assert await drain(store) == [job.id for job in jobs]
    assert await store.jobs.enqueue([twin]) == [Enqueued(twin.id)]
    assert await drain(store) == [twin.id]


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "in one bulk"])
async def test_a_replacement_of_a_holder_gets_its_slot_if_it_is_next(store: Store, together: bool) -> None:
    jobs = [
        new_job(concurrency_key="c", idempotency_key="i", on_conflict=OnConflict.REPLACE, payload=f'{{"n": {n}}}')
        for n in range(3)
    ]
    for bulk in [jobs] if together else [[job] for job in jobs]:
        await store.jobs.enqueue(bulk)
    assert await drain(store) == [jobs[-1].id]
    assert [await status_of(store, job.id) for job in jobs[:-1]] == [Status.CANCELLED] * 2


async def test_a_bulk_of_a_thousand_with_mixed_keys(store: Store) -> None:
    jobs = [
        new_job(concurrency_key=None if n % 7 == 0 else f"k{n % 50}", key_limit=1 + n % 50 % 3, priority=n % 2)
        for n in range(1000)
    ]
    await store.jobs.enqueue(jobs)
    limits = {job.concurrency_key: job.key_limit or 1 for job in jobs}
    seen = 0
    while taken := await take(store, limit=1000, most=1000):
        running = Counter(job.concurrency_key for job in taken if job.concurrency_key is not None)
        assert not {key: count for key, count in running.items() if count > limits[key]}
        assert seen or len(running) == len(limits) - 1, "every key is used at once"
        seen += len(taken)
        await store.jobs.settle([completed(job) for job in taken])
    assert seen == 1000


async def test_blocked_jobs_are_counted_as_such(store: Store) -> None:
    await enqueue_with_key(store, 10)
    await look_again(store)
    counts = (await store.operator.counts()).queues["default"]
    assert (counts["pending"], counts["blocked"]) == (1, 9)


async def test_what_a_job_says_of_its_key_is_kept_to_its_end(store: Store) -> None:
    terms: dict[str, Any] = {"key_limit": 7, "key_strict": True, "key_rate": Rate(10, SECOND, 50), "rate_cost": 3}
    (id_,) = await enqueue_with_key(store, **terms)
    before = await look(store, id_)
    await drain(store)
    after = await look(store, id_)
    for job in (before, after):
        assert (job.key_limit, job.key_strict, job.key_rate, job.rate_cost) == (7, True, "10/s burst 50", 3)
    assert after.status is Status.COMPLETED
