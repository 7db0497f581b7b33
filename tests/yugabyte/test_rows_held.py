"""Another transaction holds a pending job: claims pass over it and take the others; or see what became of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from tests.support.seed import claim_ids, enqueue, new_job, open_lease, request
from tests.support.servers.places import postgres_place
from tests.support.stores import yugabyte_url
from windlass.core.flow.queue import QueueSettings, settings
from windlass.core.ids import JobId
from windlass.store.contract import Store
from windlass.store.open import open_store

Caller = psycopg.AsyncConnection[tuple[object, ...]]


@pytest.fixture
async def caller(store: Store, tmp_path: Path) -> AsyncIterator[Caller]:
    """A connection of a program's own, whose transactions end when it says so."""
    async with await psycopg.AsyncConnection.connect(postgres_place(tmp_path)) as connection:
        yield connection
        await connection.rollback()


async def claimed_soon(store: Store) -> list[JobId]:
    """What a claim takes: on a slow machine the next ones may not look below the cursor yet."""
    async with asyncio.timeout(15):
        while not (found := await claim_ids(store)):  # noqa: ASYNC110 - only another claim tells
            await asyncio.sleep(0.05)
    return found


LIMITS = [settings(), settings(max_concurrency=100)]


@pytest.mark.parametrize(
    ("order", "limits"),
    [("strict", settings()), ("loose", settings()), ("strict", settings(max_concurrency=100))],
    ids=["strict", "loose", "limited"],
)
async def test_a_job_that_a_callers_transaction_holds_stops_no_other_job_of_its_queue(
    store: Store, caller: Caller, tmp_path: Path, order: str, limits: QueueSettings
) -> None:
    worker = open_store(f"{yugabyte_url(tmp_path)}&order={order}", deadline=10.0)
    await worker.queues.declare({"default": limits})
    await open_lease(worker)
    held, *others = await enqueue(worker, 5)
    await worker.jobs.enqueue_inside(caller, [new_job(parents=(held,))], {})
    assert sorted(await claim_ids(worker)) == sorted(others)
    await caller.rollback()
    assert await claimed_soon(worker) == [held]
    await worker.close()


async def test_many_held_jobs_in_front_stop_none_behind_them(store: Store, caller: Caller) -> None:
    await open_lease(store)
    *held, last = await enqueue(store, 11)
    await store.jobs.enqueue_inside(caller, [new_job(parents=tuple(held))], {})
    assert [job.id for job in await store.with_timeout(10.0).jobs.claim(request(limit=5))] == [last]


async def commit_once_waited_for(caller: Caller, tmp_path: Path, waiting: "asyncio.Task[object]") -> None:
    """Commit when another session waits for a row of this transaction, or has passed over it."""
    async with await psycopg.AsyncConnection.connect(postgres_place(tmp_path), autocommit=True) as look:
        locks = "SELECT FROM pg_locks WHERE NOT granted AND %s = ANY(pg_blocking_pids(pid))"
        while not waiting.done():
            if await (await look.execute(locks, (caller.info.backend_pid,))).fetchall():
                break
    await caller.commit()


@pytest.mark.parametrize("limits", LIMITS, ids=["unlimited", "limited"])
async def test_a_job_that_moves_to_another_queue_meanwhile_is_not_claimed_from_the_old_one(
    store: Store, caller: Caller, tmp_path: Path, limits: QueueSettings
) -> None:
    await store.queues.declare({"default": limits})
    await open_lease(store)
    moved, *others = await enqueue(store, 5)
    await caller.execute("UPDATE windlass.jobs SET queue = 'other' WHERE id = %s", (moved,))
    claiming = asyncio.create_task(claim_ids(store, limit=5))
    await commit_once_waited_for(caller, tmp_path, claiming)
    assert await claiming == others
