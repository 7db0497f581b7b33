"""Floors and cursors: claims step over what is dead, and past nothing that lives."""

import json
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, claim_one, enqueue, enqueue_one, handed_back, open_lease, request, settle
from windlass.core.moments import SECOND
from windlass.core.outcome import completed
from windlass.store.contract import Store
from windlass.store.postgres import claim, floors
from windlass.store.postgres.access import Access
from windlass.store.postgres.floors import Floors
from windlass.store.postgres.query import numbered, sql
from windlass.store.postgres.session import SETTINGS
from windlass.store.postgres.store import PostgresStore

_FLOOR = "SELECT rank FROM windlass.floors WHERE queue = 'default' AND urgency = 0"


@pytest.fixture(autouse=True)
def _busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests look more often than a coordinator or a runner may, however slow the machine."""
    monkeypatch.setattr(floors, "SHARE", 0)
    monkeypatch.setattr(claim, "SHARE", 0)


def access_of(store: Store) -> Access:
    assert isinstance(store, PostgresStore)
    return Access(store._server, None)


async def raise_floors(store: Store) -> None:
    """Note a moment, and raise the floors to it if that may be."""
    raising = Floors()
    await raising.tidy(access_of(store))
    await raising.tidy(access_of(store))


async def test_a_floor_rises_to_a_little_before_now_when_nothing_is_pending(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await open_lease(store, length=10**12)
    await enqueue_one(store)
    await claim_ids(store)
    clock.advance(10 * SECOND)
    await raise_floors(store)
    assert await other.does(_FLOOR) == [(clock.wall() - SECOND,)]
    later = await enqueue_one(store)
    assert await claim_ids(store) == [later]


async def test_a_floor_stays_below_what_is_pending(store: Store, clock: ManualClock, other: Other) -> None:
    rank, id_ = clock.wall(), await enqueue_one(store)
    clock.advance(10 * SECOND)
    await raise_floors(store)
    assert await other.does(_FLOOR) == [(rank,)]
    await open_lease(store, length=10**12)
    assert await claim_ids(store) == [id_]


async def test_a_floor_waits_for_who_has_yet_to_commit(store: Store, clock: ManualClock, other: Other) -> None:
    await open_lease(store, length=10**12)
    first = await enqueue_one(store)
    assert await claim_ids(store) == [first]
    late = await enqueue_one(store, delay=5 * SECOND)
    await other.does("UPDATE windlass.jobs SET status = 'pending', rank = run_at WHERE id = %s", late)
    clock.advance(60 * SECOND)
    await raise_floors(store)
    assert await other.does(_FLOOR) == [(0,)], "it may not pass a job that is not committed yet"
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


async def test_a_job_that_is_put_back_below_the_floor_comes_first(store: Store, clock: ManualClock) -> None:
    await open_lease(store, length=10**12)
    first = await enqueue_one(store)
    claimed = await claim_one(store)
    clock.advance(10 * SECOND)
    second, third = await enqueue(store, 2)
    assert await claim_ids(store, limit=1) == [second]
    await raise_floors(store)
    await settle(store, handed_back(claimed))
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
    await settle(store, handed_back(claimed))
    assert await claim_ids(store, **both) == [in_the_way]
    assert await claim_ids(store, **both) == [first]
    assert await claim_ids(store, **both) == [third]


async def test_who_raises_a_floor_gives_way_to_who_puts_a_job_back(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await open_lease(store, length=10**12)
    await enqueue_one(store)
    claimed = await claim_one(store)
    clock.advance(10 * SECOND)
    ((returns,),) = await other.does("SELECT returns FROM windlass.floors WHERE queue = 'default'")
    await other.commits()
    await settle(store, handed_back(claimed))
    change = {"queue": "default", "urgency": 0, "rank": clock.wall(), "returns": returns}
    assert await access_of(store).once(lambda db: db.run("raise_floor", change)) == 0
    assert await claim_ids(store) == [claimed.id]


async def test_what_lies_below_a_floor_in_spite_of_everything_is_found(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await open_lease(store, length=10**12)
    id_ = await enqueue_one(store)
    await other.does("UPDATE windlass.floors SET rank = %s", clock.wall() + 3600 * SECOND)
    await other.commits()
    assert await claim_ids(store) == []
    await raise_floors(store)
    assert await claim_ids(store) == [id_]


async def test_a_clock_that_was_set_back_hides_no_newcomer_below_the_floor(store: Store, clock: ManualClock) -> None:
    await open_lease(store, length=10**12)
    await enqueue_one(store)
    await claim_ids(store)
    clock.advance(7200 * SECOND)
    await raise_floors(store)
    clock.jump_wall(-3600 * SECOND)
    id_ = await enqueue_one(store)
    assert await claim_ids(store) == [id_]


async def test_under_a_held_snapshot_a_claim_does_not_walk_past_what_is_dead(
    store: Store, clock: ManualClock, other: Other, connection: Any
) -> None:
    """By what it reads, not by how long that takes: pages, before and after the floor was raised."""
    await open_lease(store, length=10**12)
    await other.does("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await other.does("SELECT 1")  # from here on it holds its snapshot
    for _ in range(20):
        await enqueue(store, 250)
        clock.advance(SECOND)
        jobs = await store.jobs.claim(request(limit=1000, most=1000))
        await store.jobs.settle([completed(job, None) for job in jobs])
    before = await _pages(connection, clock)
    await raise_floors(store)
    after = await _pages(connection, clock)
    assert after * 5 < before, (before, after)


async def _pages(connection: Any, clock: ManualClock) -> int:
    """How many pages a claim reads that finds nothing."""
    for name, value in SETTINGS.items():
        await connection.execute(f"SET {name} = '{value}'")
    statement = numbered(sql("claim"), server_clock=False)
    values: dict[str, Any] = {
        "runner": "r1", "claim": 10**9, "first": True, "queues": ["default"], "types": ["t"], "limit": 10, "since": 0,
        "returns": -1, "seen_queues": [], "seen_urgencies": [], "seen_ranks": [], "seen_ids": [], "now": clock.wall(),
    }  # fmt: skip
    text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.text}"
    rows = await connection.fetch(text, *[values[name] for name in statement.names])
    plan = json.loads(rows[0][0])[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
