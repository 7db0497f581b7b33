"""Levels: the first job of a queue and priority makes its row. Admission makes none, and waits for none."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from tests.postgres.other import Other
from tests.postgres.test_watermarks import raise_watermarks
from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, claim_one, completed, enqueue, enqueue_one, new_job, open_lease, settle
from windlass.core.jobs.change import JobChange
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.postgres.limits import watermarks

Caller = psycopg.AsyncConnection[tuple[object, ...]]
CHANGES = [JobChange(priority=5), JobChange(queue="mail"), JobChange(queue="mail", priority=5)]
MISSING = "SELECT queue, sort_priority FROM windlass.jobs EXCEPT SELECT queue, sort_priority FROM windlass.watermarks"


@pytest.fixture
async def caller(store: Store) -> AsyncIterator[Caller]:
    """A connection of a program's own, whose transactions end when it says so."""
    async with await psycopg.AsyncConnection.connect(store.address) as connection:
        yield connection
        await connection.rollback()


@pytest.mark.parametrize("wanted", CHANGES, ids=str)
async def test_a_callers_open_transaction_stops_no_admission(
    store: Store, clock: ManualClock, caller: Caller, wanted: JobChange
) -> None:
    changed = await enqueue_one(store, delay=10 * SECOND)
    await enqueue(store, 20, queue="unrelated", delay=10 * SECOND)
    await store.operator.change([changed], wanted)
    job = new_job(queue=wanted.queue or "default", priority=wanted.priority or 0)
    await store.jobs.enqueue_inside(caller, [job], {})
    clock.advance(10 * SECOND)
    assert (await store.with_timeout(5.0).jobs.admit(100)).jobs == 21


async def test_a_callers_open_transaction_stops_no_key_queue(store: Store, caller: Caller) -> None:
    await open_lease(store)
    await enqueue_one(store, concurrency_key="k")
    first = await claim_one(store)
    second = await enqueue_one(store, concurrency_key="k")
    await store.operator.change([second], JobChange(priority=5))
    await store.jobs.enqueue_inside(caller, [new_job(priority=5)], {})
    await settle(store, completed(first))
    await store.with_timeout(5.0).jobs.admit(100)
    assert await claim_ids(store.with_timeout(5.0)) == [second]


@pytest.mark.parametrize("wanted", CHANGES, ids=str)
@pytest.mark.parametrize("fields", [{}, {"delay": SECOND}, {"concurrency_key": "k"}], ids=str)
async def test_a_changed_job_has_a_place(
    store: Store, connection: Any, fields: dict[str, object], wanted: JobChange
) -> None:
    await store.operator.change(await enqueue(store, 2, **fields), wanted)
    assert await connection.fetch(MISSING) == []


async def test_a_child_that_was_given_another_priority_runs_after_its_parent(store: Store) -> None:
    await open_lease(store)
    parent = await enqueue_one(store)
    child = await enqueue_one(store, parents=(parent,))
    await store.operator.change([child], JobChange(priority=5))
    await settle(store, completed(await claim_one(store)))
    assert await claim_ids(store) == [child]


async def test_pending_jobs_at_a_place_that_is_missing_are_found(
    store: Store, clock: ManualClock, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watermarks, "SHARE", 0)
    await open_lease(store, length=10**12)
    kept = await enqueue_one(store)
    ids = [await enqueue_one(store, queue="mail", priority=priority) for priority in (5, 0)]
    await other.does("DELETE FROM windlass.watermarks WHERE queue = 'mail'")
    await other.commits()
    assert await claim_ids(store, queues=("mail",)) == []
    clock.advance(10 * SECOND)
    await raise_watermarks(store)
    assert await claim_ids(store, queues=("mail", "default")) == [*ids, kept]
