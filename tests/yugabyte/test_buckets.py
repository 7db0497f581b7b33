"""The number of buckets is raised while jobs flow."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import process
from tests.support.seed import claim_ids, completed, enqueue, enqueue_one, open_lease, request
from tests.support.stores import postgres_url, yugabyte_url
from windlass.core.flow.queue import settings
from windlass.errors import InvalidOption
from windlass.store.contract import Store
from windlass.store.open import open_store, raise_buckets
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits import watermarks
from windlass.store.sql.session import NONE


async def test_raising_buckets_while_jobs_flow_loses_nothing(tmp_path: Path, store: Store, connection: Any) -> None:
    producer, worker = (open_store(yugabyte_url(tmp_path)) for _ in range(2))
    await open_lease(worker)
    ids: list[str] = []
    done: list[str] = []
    raised = asyncio.Event()

    async def produce() -> None:
        for number in range(60):
            ids.extend(await enqueue(producer, 5, queue=f"q{number % 3}", priority=number % 2))
            if number == 20:
                assert await raise_buckets(yugabyte_url(tmp_path), 16) == 4
                raised.set()

    async def work() -> None:
        while len(done) < 300:
            jobs = await worker.jobs.claim(request(queues=("q0", "q1", "q2"), limit=20))
            await worker.jobs.settle([completed(job) for job in jobs])
            done.extend(job.id for job in jobs)

    async with asyncio.timeout(60):
        await asyncio.gather(produce(), work())
    assert raised.is_set()
    assert sorted(done) == sorted(ids)
    assert len(await connection.fetch("SELECT DISTINCT bucket FROM windlass.history")) > 8
    for each in (producer, worker):
        await each.close()


async def test_jobs_that_wait_stay_in_their_buckets_and_keep_their_order(
    tmp_path: Path, store: Store, connection: Any
) -> None:
    await open_lease(store)
    before = await enqueue(store, 40)
    await raise_buckets(yugabyte_url(tmp_path), 8)
    after = await enqueue(store, 40)
    await connection.execute("UPDATE windlass.jobs SET tags = NULL")
    assert await connection.fetchval("SELECT max(bucket) FROM windlass.jobs WHERE id = ANY($1::uuid[])", before) < 4
    assert await connection.fetchval("SELECT max(bucket) FROM windlass.jobs WHERE id = ANY($1::uuid[])", after) >= 4
    await claim_ids(store, queues=("nothing there",))  # a claim tells the process how many there are
    assert await claim_ids(store) == before + after


async def test_a_limited_queue_finds_jobs_in_new_buckets(tmp_path: Path, store: Store) -> None:
    await store.queues.declare({"default": settings(max_concurrency=100)})
    await open_lease(store)
    await enqueue(store, 5)
    await raise_buckets(yugabyte_url(tmp_path), 8)
    await enqueue(store, 45)
    found = [id_ for _ in range(3) for id_ in await claim_ids(store)]
    assert len(found) == 50


async def test_an_enqueue_that_a_raise_overtakes_is_stored(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, run, sent = watermarks.add_watermarks, Db.run, 0

    async def first_only(db: Db, name: str, values: Any = NONE) -> int:
        """The process that raises their number comes no farther than its first statement."""
        nonlocal sent
        sent += 1
        return await run(db, name, values) if sent == 1 else 0

    async def overtaken(db: Db, places: Any) -> None:
        await made(db, places)
        with monkeypatch.context() as patched:
            patched.setattr(Db, "run", first_only)
            await raise_buckets(yugabyte_url(tmp_path), 8)

    await enqueue(store)
    monkeypatch.setattr(watermarks, "add_watermarks", overtaken)
    await enqueue_one(store, idempotency_key="k")
    assert sent
    assert (await store.operator.counts()).totals["pending"] == 2


async def test_buckets_can_only_be_raised(tmp_path: Path, store: Store) -> None:
    with pytest.raises(InvalidOption, match="can only be raised: there are 4"):
        await raise_buckets(yugabyte_url(tmp_path), 3)
    with pytest.raises(InvalidOption, match="a number from 1 to 64"):
        await raise_buckets(yugabyte_url(tmp_path), 65)
    assert await raise_buckets(yugabyte_url(tmp_path), 4) == 4


async def test_other_stores_have_no_buckets_to_raise(tmp_path: Path) -> None:
    for address in (postgres_url(tmp_path), f"sqlite:///{tmp_path}/x.db"):
        with pytest.raises(InvalidOption, match="on yugabyte:// only"):
            await raise_buckets(address, 8)


def test_one_command_raises_them(tmp_path: Path, url: str) -> None:
    reported = process(tmp_path, "migrate", "--buckets", "8", WINDLASS_STORE=url)
    assert reported.stdout.splitlines() == ["The schema is up to date.", "8 buckets, 4 before"]
