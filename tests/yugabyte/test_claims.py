"""Claims from buckets: disjoint, in one order over all buckets, or looser and side by side."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.seed import claim_ids, enqueue, enqueue_one, open_lease, request
from tests.support.stores import yugabyte_url
from windlass.core.flow.queue import settings
from windlass.core.jobs.job import Claimed
from windlass.core.stats.meter import Meter
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.postgres.limits import bucket_turns, limited_attempt, throttle
from windlass.store.postgres.store import PostgresStore

CLAIMERS = 4
JOBS = 240


@pytest.fixture
async def claimers(tmp_path: Path, store: Store) -> AsyncIterator[list[Store]]:
    """Several processes on one database, as far as a store can tell."""
    opened = [open_store(yugabyte_url(tmp_path)) for _ in range(CLAIMERS)]
    for number, each in enumerate(opened):
        await open_lease(each, f"r{number}", f"w{number}")
    yield opened
    for each in opened:
        await each.close()


async def claim_all(store: Store, runner: str) -> list[list[Claimed]]:
    """Claim until nothing is left."""
    claims = []
    while jobs := await store.jobs.claim(request(runner, limit=7)):
        claims.append(jobs)
    return claims


async def drain(stores: list[Store]) -> list[list[Claimed]]:
    claims = await asyncio.gather(*(claim_all(store, f"r{number}") for number, store in enumerate(stores)))
    return [some for of_one in claims for some in of_one]


async def places(connection: Any) -> dict[str, tuple[int, int, str]]:
    rows = await connection.fetch("SELECT id::text, sort_priority, rank FROM windlass.jobs")
    return {row[0]: (row[1], row[2], row[0]) for row in rows}


async def enqueue_mixed(store: Store) -> list[str]:
    """Three priorities, with ids that are no times: every bucket has some."""
    ids = []
    for number in range(JOBS // 6):
        ids += await enqueue(store, 6, priority=number % 3)
    return ids


async def test_several_claimers_take_every_job_once_and_in_one_order(claimers: list[Store], connection: Any) -> None:
    ids = await enqueue_mixed(claimers[0])
    order = await places(connection)
    claims = [[order[job.id] for job in some] for some in await drain(claimers)]
    assert sorted(place[2] for some in claims for place in some) == sorted(ids)
    # Claims took turns: each took the best of what there was, so that one after another they are the order of all.
    one_after_another = [place for some in sorted(claims) for place in some]
    assert one_after_another == sorted(order.values())


async def test_jobs_are_spread_over_all_buckets_by_their_ids(store: Store, connection: Any) -> None:
    await enqueue(store, JOBS)
    rows = await connection.fetch("SELECT bucket, count(*) FROM windlass.jobs GROUP BY bucket")
    assert {row[0] for row in rows} == {0, 1, 2, 3}
    assert max(row[1] for row in rows) < JOBS / 2


async def test_a_claim_leaves_jobs_in_their_pages_and_adds_no_index_entries(store: Store, connection: Any) -> None:
    """As on YugabyteDB, where an update of other columns writes to no index: other claimers step over each entry."""
    pages = "SELECT id, (ctid::text::point)[0] FROM windlass.jobs"
    await open_lease(store)
    await enqueue(store, JOBS)
    before = dict(await connection.fetch(pages))
    assert len(await store.jobs.claim(request(limit=100))) == 100
    assert dict(await connection.fetch(pages)) == before


async def test_loose_claimers_take_every_job_once_each_claim_in_order(
    tmp_path: Path, store: Store, connection: Any
) -> None:
    stores = [open_store(f"{yugabyte_url(tmp_path)}&order=loose") for _ in range(CLAIMERS)]
    for number, each in enumerate(stores):
        await open_lease(each, f"r{number}", f"w{number}")
    ids = await enqueue_mixed(stores[0])
    order = await places(connection)
    claims = [[order[job.id] for job in some] for some in await drain(stores)]
    assert sorted(place[2] for some in claims for place in some) == sorted(ids)
    assert [some for some in claims if some != sorted(some)] == []
    for each in stores:
        await each.close()


async def test_a_loose_claim_takes_jobs_of_buckets_that_no_other_has_locked(
    tmp_path: Path, store: Store, connection: Any
) -> None:
    loose = open_store(f"{yugabyte_url(tmp_path)}&order=loose")
    await open_lease(loose)
    await enqueue(loose, JOBS)
    await connection.execute("BEGIN")
    await connection.execute("SELECT FROM windlass.claim_locks WHERE bucket <> 2 FOR NO KEY UPDATE")
    await loose.jobs.claim(request(limit=20))
    buckets = await connection.fetch("SELECT DISTINCT bucket FROM windlass.jobs WHERE status = 'running'")
    await connection.execute("ROLLBACK")
    assert [row[0] for row in buckets] == [2]
    await loose.close()


async def test_a_claim_whose_lock_stays_taken_goes_ahead_and_its_waits_are_counted(
    store: Store, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_turns, "MAX_TURNS", 3)
    await open_lease(store)
    ids = await enqueue(store, 5)
    await connection.execute("BEGIN")
    await connection.execute("SELECT FROM windlass.claim_locks FOR NO KEY UPDATE")
    assert await claim_ids(store) == ids
    await connection.execute("ROLLBACK")
    assert isinstance(store, PostgresStore)
    assert store._server.conflicts.lock_waits == 3


async def test_waits_of_a_claim_from_a_limited_queue_are_counted_too(
    store: Store, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited_attempt, "MAX_TURNS", 3)
    await store.queues.declare({"default": settings(max_concurrency=10)})
    await open_lease(store)
    ids = await enqueue(store, 5)
    await claim_ids(store, limit=1)  # now it is known to be limited
    assert isinstance(store, PostgresStore)
    assert store._server.conflicts.lock_waits == 0
    await connection.execute("BEGIN")
    await connection.execute("SELECT FROM windlass.claim_locks FOR NO KEY UPDATE")
    assert await claim_ids(store) == ids[1:]
    await connection.execute("ROLLBACK")
    assert store._server.conflicts.lock_waits >= 3


async def test_waits_of_claims_are_kept_for_doctor(store: Store, connection: Any) -> None:
    assert isinstance(store, PostgresStore)
    store._server.conflicts.lock_waits, store._server.conflicts.repeated = 3, 2
    await store.stats.record([])
    await store.stats.record([])
    row = await connection.fetchrow(
        "SELECT sum(conflicts)::integer, sum(lock_waits)::integer FROM windlass.conflicts"
    )
    assert tuple(row) == (2, 3)


async def test_meters_are_recorded_where_conflicts_cannot_be_kept(store: Store, connection: Any) -> None:
    assert isinstance(store, PostgresStore)
    store._server.conflicts.repeated = 1
    await connection.execute("ALTER TABLE windlass.conflicts ADD CONSTRAINT none CHECK (conflicts = 0)")
    await store.stats.record([Meter(queue="default", type="t", completed=1)])
    assert [each.completed for each in (await store.stats.recent(60_000_000)).meters] == [1]


async def test_a_job_committed_late_is_found_below_the_cursor(
    store: Store, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine, a claim that comes short looks from the watermark on.
    monkeypatch.setattr(throttle, "SHARE", 0)
    await open_lease(store)
    await enqueue(store, 20)
    assert len(await claim_ids(store, limit=10)) == 10
    late = await enqueue_one(store)
    await connection.execute("UPDATE windlass.jobs SET rank = 1 WHERE id = $1", late)
    found = [await claim_ids(store, limit=10) for _ in range(2)]
    assert late in [id_ for some in found for id_ in some]


async def test_time_spent_waiting_for_a_turn_delays_no_rescan_below_the_cursor(
    store: Store, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def long_pause(attempt: int) -> None:
        await asyncio.sleep(1)

    monkeypatch.setattr(bucket_turns, "MAX_TURNS", 2)
    monkeypatch.setattr(bucket_turns, "pause", long_pause)
    await open_lease(store)
    await enqueue(store, 5)
    await connection.execute("BEGIN")
    await connection.execute("SELECT FROM windlass.claim_locks FOR NO KEY UPDATE")
    assert len(await claim_ids(store)) == 5
    await connection.execute("ROLLBACK")
    late = await enqueue_one(store)
    await connection.execute("UPDATE windlass.jobs SET rank = 1 WHERE id = $1", late)
    # Twenty times the two seconds would be too late.
    async with asyncio.timeout(15):
        while not (found := await claim_ids(store)):  # noqa: ASYNC110 - only another claim tells
            await asyncio.sleep(0.05)
    assert found == [late]
