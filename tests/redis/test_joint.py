"""Enqueues of one moment are sent together, which shows by the time alone."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.support.seed import enqueue_one, new_job
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Enqueued
from windlass.errors import KeyConflict, StoreUnavailable
from windlass.store.contract import Store
from windlass.store.redis.connection.access import Access
from windlass.store.redis.verbs.enqueue import MAX_COALESCED, OTHER


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the server did what."""
    counted: Counter[str] = Counter()

    async def count(access: Access, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        reply = await call(access, name, queue, request, *blobs)
        if reply != OTHER:
            counted["enqueue" if name.startswith("enqueue") else name] += 1
        return reply

    call = Access.call
    monkeypatch.setattr(Access, "call", count)
    return counted


async def test_many_hand_ins_of_one_moment_take_few_trips(store: Store, trips: Counter[str]) -> None:
    jobs = [new_job() for _ in range(2 * MAX_COALESCED)]
    answers = await asyncio.gather(*(store.jobs.enqueue([job]) for job in jobs))
    assert answers == [[Enqueued(job.id)] for job in jobs]
    assert trips["enqueue"] == 3, "the first one alone, then as many at a time as go together"
    assert all(await store.operator.get([job.id for job in jobs]))


async def test_hand_ins_one_after_the_other_do_not_wait_for_each_other(store: Store, trips: Counter[str]) -> None:
    for job in [new_job() for _ in range(3)]:
        assert await store.jobs.enqueue([job]) == [Enqueued(job.id)]
    assert trips["enqueue"] == 3


async def test_each_is_refused_for_itself(store: Store) -> None:
    held = await enqueue_one(store, idempotency_key="k")
    good = [new_job() for _ in range(4)]
    conflicting = new_job(idempotency_key="k", on_conflict=OnConflict.RAISE)
    bad = new_job(payload="\ud800")
    answers = await asyncio.gather(
        *(store.jobs.enqueue(jobs) for jobs in ([good[0]], [good[1]], [conflicting], [good[2]], [bad], [good[3]])),
        return_exceptions=True,
    )
    assert [answers[n] for n in (0, 1, 3, 5)] == [[Enqueued(job.id)] for job in good]
    assert isinstance(answers[2], KeyConflict)
    assert answers[2].job_id == held
    assert isinstance(answers[4], UnicodeEncodeError)
    assert await store.operator.get([conflicting.id, bad.id]) == [None, None]


async def test_a_bulk_is_refused_as_a_whole_among_others(store: Store) -> None:
    await enqueue_one(store, idempotency_key="k")
    bulk = [new_job(), new_job(idempotency_key="k", on_conflict=OnConflict.RAISE)]
    first, other = new_job(), new_job()
    answers = await asyncio.gather(
        store.jobs.enqueue([first]), store.jobs.enqueue(bulk), store.jobs.enqueue([other]), return_exceptions=True
    )
    assert isinstance(answers[1], KeyConflict)
    assert await store.operator.get([job.id for job in bulk]) == [None, None]
    assert all(await store.operator.get([first.id, other.id]))


async def test_jobs_of_several_callers_meet_each_other_in_their_order(store: Store) -> None:
    first, *others = [new_job(idempotency_key="k") for _ in range(5)]
    answers = await asyncio.gather(
        store.jobs.enqueue([new_job()]), *(store.jobs.enqueue([j]) for j in [first, *others])
    )
    assert answers[1:] == [[Enqueued(first.id)], *[[Enqueued(first.id, existing=True)]] * 4]


async def test_a_call_that_gives_up_before_it_joins_a_batch_enqueues_nothing(store: Store) -> None:
    first, given_up, other = new_job(), new_job(), new_job()
    tasks = [asyncio.create_task(store.jobs.enqueue([job])) for job in (first, given_up, other)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers[1], asyncio.CancelledError)
    assert await store.operator.get([given_up.id]) == [None]
    assert all(await store.operator.get([first.id, other.id]))


async def test_the_others_go_on_if_the_first_gives_up(store: Store) -> None:
    jobs = [new_job() for _ in range(3)]
    tasks = [asyncio.create_task(store.jobs.enqueue([job])) for job in jobs]
    await asyncio.sleep(0)
    tasks[0].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert answers[1:] == [[Enqueued(job.id)] for job in jobs[1:]]


async def test_all_calls_of_a_batch_learn_that_the_store_is_gone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(access: Access, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        await asyncio.sleep(0)
        raise StoreUnavailable("gone", maybe_done=True)

    await store.migrate()
    monkeypatch.setattr(Access, "call", fail)
    answers = await asyncio.gather(*(store.jobs.enqueue([new_job()]) for _ in range(4)), return_exceptions=True)
    assert all(isinstance(answer, StoreUnavailable) and answer.maybe_done for answer in answers)
