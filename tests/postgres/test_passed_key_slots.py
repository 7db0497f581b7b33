"""A completion passes key slots on to the jobs that wait for them, and leaves a dirty key where it cannot."""

import asyncio
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.key_queues import enqueue_with_key, take
from tests.support.seed import claim_ids, completed, enqueue_one, new_job, open_lease, settle, status_of
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import Rate
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store

_DIRTY = "SELECT key FROM windlass.dirty_keys ORDER BY key"
_SLOTS = "SELECT id::text, key_slot FROM windlass.jobs WHERE key_slot IS NOT NULL"
_LOCK = "SELECT id FROM windlass.jobs WHERE id = %s FOR UPDATE"
_MOVE = "UPDATE windlass.jobs SET queue = 'elsewhere' WHERE id = %s"


@pytest.fixture(autouse=True)
async def lease(store: Store) -> None:
    """Of a runner that claims all the time."""
    await open_lease(store, length=10**12)


async def _end(store: Store, *jobs: Claimed) -> None:
    await store.jobs.settle([completed(job) for job in jobs])


async def _found(other: Other, text: str) -> list[Any]:
    rows = await other.does(text)
    await other.commits()
    return rows


async def _waiting(store: Store, ids: list[JobId]) -> list[JobId]:
    return [id_ for id_ in ids if await status_of(store, id_) is Status.BLOCKED]


async def test_the_next_job_is_pending_at_once_and_no_key_is_dirty(store: Store, other: Other) -> None:
    _, second, third = await enqueue_with_key(store, 3)
    (job,) = await take(store)
    await _end(store, job)
    assert await status_of(store, second) is Status.PENDING
    assert await _found(other, _SLOTS) == [(second, 0)]
    assert await _found(other, _DIRTY) == []
    assert await claim_ids(store) == [second]
    assert await _waiting(store, [third]) == [third]


async def test_a_waiting_runner_is_woken_for_it(store: Store) -> None:
    await enqueue_with_key(store, 2)
    (job,) = await take(store)
    store.signals.subscribe(("default",))
    cursor = store.signals.cursor()
    await _end(store, job)
    assert await store.signals.wait(cursor, 5.0)


async def test_of_several_slots_each_goes_to_one_job_in_order(store: Store, other: Other) -> None:
    ids = await enqueue_with_key(store, 6, key_limit=3)
    others = await enqueue_with_key(store, 2, "another")
    jobs = await take(store)
    await _end(store, *(job for job in jobs if job.id != ids[0]))
    assert dict(await _found(other, _SLOTS)) == {ids[0]: 0, ids[3]: 1, ids[4]: 2, others[1]: 0}
    assert await _found(other, _DIRTY) == []


async def test_a_key_that_no_job_waits_for_is_dirty(store: Store, other: Other) -> None:
    """A job that is not visible yet may have its own dirty key processed while this one still holds the slot."""
    await enqueue_with_key(store, 1)
    (job,) = await take(store)
    await _end(store, job)
    assert await _found(other, _DIRTY) == [("k",)]


async def test_fewer_jobs_than_slots_leave_a_dirty_key(store: Store, other: Other) -> None:
    *_, third = await enqueue_with_key(store, 3, key_limit=2)
    await _end(store, *(await take(store)))
    assert await status_of(store, third) is Status.PENDING
    assert await _found(other, _DIRTY) == [("k",)]


@pytest.mark.parametrize("strict", [False, True])
async def test_a_locked_job_is_neither_waited_for_nor_overtaken(store: Store, other: Other, strict: bool) -> None:
    _, second, third = await enqueue_with_key(store, 3, key_strict=strict)
    (job,) = await take(store)
    await other.does(_LOCK, second)
    async with asyncio.timeout(5):
        await _end(store, job)
    assert await _waiting(store, [second, third]) == [second, third]
    await other.commits()
    assert await _found(other, _DIRTY) == [("k",)]
    assert await claim_ids(store) == [second]


async def test_a_job_that_leaves_its_key_meanwhile_gets_no_slot(store: Store, other: Other) -> None:
    first, second = await enqueue_with_key(store, 2)
    (job,) = await take(store)
    await other.does(_LOCK, first)
    ending = asyncio.create_task(settle(store, completed(job)))
    await other.is_waited_for()
    await other.does(_MOVE, second)
    await other.commits()
    await ending
    assert await _found(other, _SLOTS) == []
    assert await _found(other, _DIRTY) == [("k",)]


async def test_a_lower_limit_of_the_next_job_holds(store: Store, other: Other) -> None:
    await enqueue_with_key(store, 2, key_limit=2)
    (third,) = await enqueue_with_key(store, 1, key_limit=1)
    job, holder = await take(store)
    await _end(store, job)
    assert await status_of(store, third) is Status.BLOCKED
    assert await claim_ids(store) == []
    await _end(store, holder)
    assert await status_of(store, third) is Status.PENDING


async def test_a_higher_limit_of_the_job_after_it_is_found(store: Store) -> None:
    _, second = await enqueue_with_key(store, 2)
    (third,) = await enqueue_with_key(store, 1, key_limit=2)
    (job,) = await take(store)
    await _end(store, job)
    assert await claim_ids(store) == [second, third]


@pytest.mark.parametrize("at_once", [True, False])
async def test_several_of_a_strict_key_run_in_the_order_of_being_due(
    store: Store, clock: ManualClock, at_once: bool
) -> None:
    await enqueue_with_key(store, 2, key_limit=2, key_strict=True)
    jobs = await take(store)
    later, first = (new_job(concurrency_key="k", key_limit=2, key_strict=True, priority=each) for each in (1, 0))
    for job in (first, later):
        await store.jobs.enqueue([job])
        clock.advance(SECOND)
    for batch in [jobs] if at_once else [[job] for job in jobs]:
        await _end(store, *batch)
    assert [*await claim_ids(store, limit=1), *await claim_ids(store, limit=1)] == [first.id, later.id]


async def test_a_job_with_a_rate_is_left_to_the_admission(store: Store, other: Other) -> None:
    await enqueue_with_key(store, 1)
    (rated,) = await enqueue_with_key(store, 1, key_rate=Rate(1, SECOND, 1))
    (job,) = await take(store)
    await _end(store, job)
    assert await status_of(store, rated) is Status.BLOCKED
    assert await claim_ids(store) == [rated]
    assert await _found(other, "SELECT rated FROM windlass.queues WHERE name = 'default'") == [(True,)]


async def test_in_a_fair_queue_it_waits_for_the_turn_of_its_tenant(store: Store, other: Other) -> None:
    await store.queues.change("default", QueueSettings(fair=True))
    _, second = await enqueue_with_key(store, 2, tenant="t")
    (job,) = await take(store)
    await _end(store, job)
    assert await _found(other, "SELECT tenant_queue FROM windlass.jobs WHERE key_slot IS NOT NULL") == [("t",)]
    assert await claim_ids(store) == [second]


async def test_its_rank_is_not_below_the_watermark(store: Store, other: Other) -> None:
    await enqueue_with_key(store, 2)
    (job,) = await take(store)
    await other.does("UPDATE windlass.watermarks SET rank = 9000000000000000")
    await other.commits()
    await _end(store, job)
    ranks = "SELECT rank FROM windlass.jobs WHERE key_slot IS NOT NULL"
    assert await _found(other, ranks) == [(9_000_000_000_000_000,)]


async def test_an_admission_takes_all_dirty_rows_of_a_key(store: Store, other: Other) -> None:
    for _ in range(3):
        await enqueue_with_key(store, 1)
    assert await _found(other, _DIRTY) == [("k",)] * 3
    await store.jobs.admit(10)
    assert await _found(other, _DIRTY) == []


async def test_a_claim_that_has_enough_looks_at_a_part_of_the_dirty_keys(
    store: Store, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in range(5):
        await enqueue_with_key(store, 1, f"key {key}")
    assert len(await claim_ids(store)) == 5
    for key in range(5):
        await enqueue_with_key(store, 1, f"key {key}")
    plain = await enqueue_one(store)
    monkeypatch.setattr("windlass.store.postgres.limits.key_queue.MAX_DIRTY_KEYS", 2)
    monkeypatch.setattr("windlass.store.postgres.limits.key_queue.MIN_PAUSE", 0)
    assert await claim_ids(store, limit=1) == [plain]
    assert len(await _found(other, _DIRTY)) == 3, "none of them has room, and the claim does not go through all"
    assert await claim_ids(store, limit=1) == []
    assert await _found(other, _DIRTY) == []
