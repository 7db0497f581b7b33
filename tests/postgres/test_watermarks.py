"""Watermarks and cursors: claims step over what is dead, and past nothing that lives."""

import asyncio
import json
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, claim_one, enqueue, enqueue_one, open_lease, request, requeued, settle
from windlass.core.jobs.outcome import completed
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import numbered
from windlass.store.postgres.connection.profile import PLAIN
from windlass.store.postgres.connection.session import SETTINGS
from windlass.store.postgres.limits import throttle, watermarks
from windlass.store.postgres.limits.watermarks import Watermarks
from windlass.store.postgres.store import PostgresStore

_WATERMARK = "SELECT rank FROM windlass.watermarks WHERE queue = 'default' AND sort_priority = 0"


@pytest.fixture(autouse=True)
def _busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests look more often than a coordinator or a runner may, however slow the machine."""
    monkeypatch.setattr(watermarks, "SHARE", 0)
    monkeypatch.setattr(throttle, "SHARE", 0)


def access_of(store: Store) -> Access:
    assert isinstance(store, PostgresStore)
    return Access(store._server, None)


async def raise_watermarks(store: Store) -> None:
    """Note a moment, and raise the watermarks to it if that may be."""
    raising = Watermarks()
    await raising.tidy(access_of(store))
    await raising.tidy(access_of(store))


async def test_a_watermark_rises_to_a_little_before_now_when_nothing_is_pending(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await open_lease(store, length=10**12)
    await enqueue_one(store)
    await claim_ids(store)
    clock.advance(10 * SECOND)
    await raise_watermarks(store)
    assert await other.does(_WATERMARK) == [(clock.wall() - SECOND,)]
    later = await enqueue_one(store)
    assert await claim_ids(store) == [later]


async def test_a_watermark_stays_below_what_is_pending(store: Store, clock: ManualClock, other: Other) -> None:
    rank, id_ = clock.wall(), await enqueue_one(store)
    clock.advance(10 * SECOND)
    await raise_watermarks(store)
    assert await other.does(_WATERMARK) == [(rank,)]
    await open_lease(store, length=10**12)
    assert await claim_ids(store) == [id_]


async def test_a_watermark_waits_for_uncommitted_transactions(store: Store, clock: ManualClock, other: Other) -> None:
    await open_lease(store, length=10**12)
    first = await enqueue_one(store)
    assert await claim_ids(store) == [first]
    late = await enqueue_one(store, delay=5 * SECOND)
    await other.does("UPDATE windlass.jobs SET status = 'pending', rank = run_at WHERE id = %s", late)
    clock.advance(60 * SECOND)
    await raise_watermarks(store)
    assert await other.does(_WATERMARK) == [(0,)], "it may not pass a job that is not committed yet"
    await other.commits()
    assert await claim_ids(store) == [late]


async def test_a_job_that_was_committed_late_is_found_behind_the_cursor(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await open_lease(store, length=10**12)
    await enqueue_one(store)
    late = await enqueue_one(store, delay=SECOND)
    await other.does("UPDATE windlass.jobs SET status = 'pending', rank = run_at WHERE id = %s", late)
    clock.advance(10 * SECOND)
    newest = await enqueue_one(store)
    assert newest in await claim_ids(store)
    await other.commits()
    assert await claim_ids(store) == [late]


async def test_a_job_that_is_put_back_below_the_watermark_comes_first(store: Store, clock: ManualClock) -> None:
    await open_lease(store, length=10**12)
    first = await enqueue_one(store)
    claimed = await claim_one(store)
    clock.advance(10 * SECOND)
    second, third = await enqueue(store, 2)
    assert await claim_ids(store, limit=1) == [second]
    await raise_watermarks(store)
    await settle(store, requeued(claimed))
    assert await claim_ids(store) == [first, third]


@pytest.mark.parametrize("of", [{"queue": "b"}, {"queue": "a", "priority": -1}], ids=["queue", "priority"])
async def test_a_claim_that_had_enough_before_it_came_to_a_place_looks_there_the_next_time(
    store: Store, clock: ManualClock, of: dict[str, Any]
) -> None:
    await open_lease(store, length=10**12)
    both: dict[str, Any] = {"queues": ("a", "b"), "limit": 1}
    first, second, third = [await enqueue_one(store, **of) for _ in range(3)]
    claimed = await claim_one(store, **both)
    assert (claimed.id, await claim_ids(store, **both)) == (first, [second])
    in_the_way = await enqueue_one(store, queue="a")
    await settle(store, requeued(claimed))
    assert await claim_ids(store, **both) == [in_the_way]
    assert await claim_ids(store, **both) == [first]
    assert await claim_ids(store, **both) == [third]


async def test_raising_a_watermark_gives_way_to_a_requeue(
    store: Store, clock: ManualClock, other: Other, connection: Any
) -> None:
    """The job is put back after the snapshot of the statement that raises was taken, and before it writes."""
    await open_lease(store, length=10**12)
    await enqueue_one(store)
    claimed = await claim_one(store)
    clock.advance(10 * SECOND)
    await other.does("SELECT pg_advisory_lock(7)")
    held_up = "seen.rank > seen.watermark AND (SELECT pg_advisory_lock(7)::text) IS NOT NULL"
    text = PLAIN.filled(PLAIN.statement("raise_watermarks")).replace("seen.rank > seen.watermark", held_up)
    raising = asyncio.create_task(_raised(connection, text, clock))
    await other.is_waited_for()
    await settle(store, requeued(claimed))
    await other.does("SELECT pg_advisory_unlock(7)")
    assert await raising == (1, 0)
    assert await claim_ids(store) == [claimed.id]


async def test_a_locked_watermark_is_left_and_the_others_rise(
    store: Store, clock: ManualClock, other: Other, connection: Any
) -> None:
    for queue in ("a", "b"):
        await enqueue_one(store, queue=queue, delay=3600 * SECOND)
    await other.does("SELECT 1 FROM windlass.watermarks WHERE queue = 'a' FOR UPDATE")
    assert await _raised(connection, PLAIN.filled(PLAIN.statement("raise_watermarks")), clock) == (2, 1)
    assert await other.does("SELECT queue FROM windlass.watermarks WHERE rank > 0") == [("b",)]


async def _raised(connection: Any, text: str, clock: ManualClock) -> tuple[int, int]:
    """How many places the statement has looked at, and how many watermarks it has raised."""
    statement = numbered(text, server_clock=False)
    values = {"queue": "", "sort_priority": -1, "limit": 9, "rank": clock.wall(), "idle": clock.wall(), "since": 0}
    ((places, _, _, raised),) = await connection.fetch(statement.text, *[values[name] for name in statement.names])
    return places, raised


async def test_a_job_below_the_watermark_in_spite_of_everything_is_found(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await open_lease(store, length=10**12)
    id_ = await enqueue_one(store)
    await other.does("UPDATE windlass.watermarks SET rank = %s", clock.wall() + 3600 * SECOND)
    await other.commits()
    assert await claim_ids(store) == []
    await raise_watermarks(store)
    assert await claim_ids(store) == [id_]


async def test_a_clock_that_was_set_back_hides_no_new_job_below_the_watermark(
    store: Store, clock: ManualClock
) -> None:
    await open_lease(store, length=10**12)
    await enqueue_one(store)
    await claim_ids(store)
    clock.advance(7200 * SECOND)
    await raise_watermarks(store)
    clock.jump_wall(-3600 * SECOND)
    id_ = await enqueue_one(store)
    assert await claim_ids(store) == [id_]


async def test_under_a_held_snapshot_a_claim_does_not_walk_past_what_is_dead(
    store: Store, clock: ManualClock, other: Other, connection: Any
) -> None:
    """By what it reads, not by how long that takes: pages, before and after the watermark was raised."""
    await open_lease(store, length=10**12)
    await other.does("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await other.does("SELECT 1")  # from here on it holds its snapshot
    for _ in range(20):
        await enqueue(store, 250)
        clock.advance(SECOND)
        jobs = await store.jobs.claim(request(limit=1000, most=1000))
        await store.jobs.settle([completed(job, None) for job in jobs])
    before = await _pages(connection, clock)
    await raise_watermarks(store)
    after = await _pages(connection, clock)
    assert after * 5 < before, (before, after)


async def _pages(connection: Any, clock: ManualClock) -> int:
    """How many pages a claim reads that finds nothing."""
    for name, value in SETTINGS.items():
        await connection.execute(f"SET {name} = '{value}'")
    statement = numbered(PLAIN.filled(PLAIN.statement("claim")), server_clock=False)
    values: dict[str, Any] = {
        "runner": "r1", "claim": 10**9, "first": True, "queues": ["default"], "types": ["t"], "limit": 10, "since": 0,
        "returns": -1, "seen_queues": [], "seen_sort_priorities": [], "seen_ranks": [], "seen_ids": [],
        "over": [], "now": clock.wall(),
    }  # fmt: skip
    text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.text}"
    rows = await connection.fetch(text, *[values[name] for name in statement.names])
    plan = json.loads(rows[0][0])[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
