"""Lines for concurrency keys, where several let jobs in at the same time, and others hold locks."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.key_queues import enqueue_with_key
from tests.support.seed import claim_ids, claim_one, completed, enqueue_one, new_job, open_lease, settle, status_of
from tests.support.stores import STORES
from windlass.core.flow.rate import Rate
from windlass.core.jobs.change import JobChange
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.postgres.connection.profile import PLAIN
from windlass.store.sql.statements import statements_of

_LOCK = "SELECT name FROM windlass.queues WHERE name = 'default' FOR NO KEY UPDATE"
_ADMIT = "UPDATE windlass.jobs SET status = 'pending', reason = NULL, key_slot = 0 WHERE id = %s"
_LOCK_ONCE_WAITED_FOR = """
DO $$ BEGIN
    WHILE NOT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
    PERFORM name FROM windlass.queues WHERE name = 'default' FOR UPDATE;
END $$
"""
"""In one statement: within the second after which a session that waits for us looks for a deadlock."""
_SLOTS = "SELECT count(*) FROM windlass.jobs WHERE key_slot IS NOT NULL"
_AT_ONCE = f"WITH locked AS MATERIALIZED ({_LOCK}) SELECT (SELECT count(*) FROM locked), ({_SLOTS})"


@pytest.fixture
async def stores(store: Store, tmp_path: Path, clock: ManualClock) -> AsyncIterator[list[Store]]:
    """Several processes, as far as the server can tell; each with a runner of its own."""
    opened = [store, *(STORES["postgres"].open(tmp_path, clock) for _ in range(4))]
    for number, each in enumerate(opened):
        await open_lease(each, f"r{number}", length=10**12)
    yield opened
    for each in opened[1:]:
        await each.close()


async def test_a_count_in_the_statement_that_waits_for_the_lock_is_too_low(store: Store, other: Other) -> None:
    """Why there are two statements: the snapshot of one that waits is older than what it has waited for."""
    first, _ = await enqueue_with_key(store, 2)
    await other.does(_LOCK)
    await other.does(_ADMIT, first)
    async with await psycopg.AsyncConnection.connect(store.address) as waiting:
        counting = asyncio.create_task(waiting.execute(_AT_ONCE))
        await other.is_waited_for()
        await other.commits()
        assert await (await counting).fetchall() == [(1, 0)], "it would let a second one in"
        assert await (await waiting.execute(_SLOTS)).fetchall() == [(1,)], "a new statement sees the slot"


async def test_of_many_admissions_at_once_each_key_gets_one(stores: list[Store], other: Other) -> None:
    heads = []
    for round_ in range(10):
        heads += (await enqueue_with_key(stores[0], 3, f"key {round_}"))[:1]
        await asyncio.gather(*(claim_ids(each, f"r{number}") for number, each in enumerate(stores)))
    await claim_ids(stores[0], "r0")
    running = "SELECT id::text FROM windlass.jobs WHERE key_slot IS NOT NULL AND status = 'running' ORDER BY id"
    assert [row[0] for row in await other.does(running)] == heads
    assert await other.does(_SLOTS) == [(10,)]


async def test_an_admission_during_another_leaves_it_to_that_one(store: Store, other: Other) -> None:
    await open_lease(store, length=10**12)
    first, second = await enqueue_with_key(store, 2)
    await other.does(_LOCK)
    assert await claim_ids(store) == []
    await other.does(_ADMIT, first)
    await other.commits()
    assert await claim_ids(store) == [first]
    assert await status_of(store, second) is Status.BLOCKED


async def test_the_index_is_the_net_for_calls_that_lock_nothing(store: Store, other: Other) -> None:
    await open_lease(store, length=10**12)
    first, second = await enqueue_with_key(store, 2)
    await other.does(_ADMIT, second)
    claiming = asyncio.create_task(claim_ids(store))
    await other.is_waited_for()
    await other.commits()
    assert await claiming == [], "the first look was wrong, and the second one is not"
    assert await status_of(store, first) is Status.BLOCKED
    assert await claim_ids(store) == [second]


async def test_a_deadlock_stays_inside(store: Store, other: Other) -> None:
    await open_lease(store, length=10**12)
    first, second = await enqueue_with_key(store, 2)
    # PostgreSQL looks for a deadlock once per wait, and ends the session that looks. This one looks late.
    await other.does("SET LOCAL deadlock_timeout = '1min'")
    await other.does(_ADMIT, second)
    locking = asyncio.create_task(other.does(_LOCK_ONCE_WAITED_FOR))
    assert await claim_ids(store) == [], "ended by the deadlock, and tried again"
    await locking
    await other.commits()
    assert await claim_ids(store) == [second]
    assert await status_of(store, first) is Status.BLOCKED


async def test_one_that_is_changed_before_it_is_locked_is_not_forgotten(
    store: Store, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed by the enqueue of a job that waits for it, after the snapshot of the admission was taken."""
    seen = "SELECT DISTINCT key FROM first"
    held_up = f"{seen} WHERE (SELECT pg_advisory_xact_lock(7)::text) IS NOT NULL"
    text = PLAIN.statement("admit_waiting")
    assert seen in text
    monkeypatch.setitem(statements_of("postgres", PLAIN.name), "admit_waiting", text.replace(seen, held_up))
    await open_lease(store, length=10**12)
    (job,) = await enqueue_with_key(store)
    await other.does("SELECT pg_advisory_lock(7)")
    claiming = asyncio.create_task(claim_ids(store))
    await other.is_waited_for()
    await store.jobs.enqueue([new_job(parents=(job,))])
    await other.does("SELECT pg_advisory_unlock(7)")
    found = await claiming
    assert found + await claim_ids(store) == [job]


@pytest.mark.parametrize(("strict", "next_"), [(False, 1), (True, None)])
async def test_a_locked_one_is_overtaken_only_where_order_is_not_strict(
    store: Store, other: Other, strict: bool, next_: int | None
) -> None:
    await open_lease(store, length=10**12)
    ids = await enqueue_with_key(store, 3, key_strict=strict)
    await other.does("SELECT id FROM windlass.jobs WHERE id = %s FOR UPDATE", ids[0])
    assert await claim_ids(store) == ([] if next_ is None else [ids[next_]])
    await other.commits()
    assert await claim_ids(store) == (ids[:1] if next_ is None else [])


@pytest.mark.parametrize("strict", [False, True])
async def test_a_locked_one_in_the_middle_is_not_forgotten(store: Store, other: Other, strict: bool) -> None:
    await open_lease(store, length=10**12)
    first, second = await enqueue_with_key(store, 2, key_limit=3, key_strict=strict)
    await other.does("SELECT id FROM windlass.jobs WHERE id = %s FOR UPDATE", second)
    assert await claim_ids(store) == [first]
    await other.commits()
    assert await claim_ids(store) == [second]


async def test_more_locked_ones_than_one_part_end_the_admission(
    store: Store, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.store.postgres.limits.key_queue.MAX_DIRTY_KEYS", 2)
    await open_lease(store, length=10**12)
    locked = [job for key in "abc" for job in await enqueue_with_key(store, 1, key)]
    await other.does("SELECT id FROM windlass.jobs FOR UPDATE")
    free = await enqueue_with_key(store, 1, "d")
    async with asyncio.timeout(5):
        assert await claim_ids(store) + await claim_ids(store) == free
    await other.commits()
    assert await claim_ids(store) == locked


async def test_a_callers_open_transaction_blocks_no_other_and_its_job_is_found_when_it_commits(store: Store) -> None:
    """Its mark has a lower number than others that were taken meanwhile: it is not looked for above those only."""
    await open_lease(store, length=10**12)
    await enqueue_one(store)  # the queue has been used before
    await claim_ids(store)
    async with await psycopg.AsyncConnection.connect(store.address) as connection:
        theirs = new_job(concurrency_key="k")
        await store.jobs.enqueue_inside(connection, [theirs], {})
        for _ in range(5):
            (ours,) = await enqueue_with_key(store.with_timeout(5.0))
            job = await claim_one(store.with_timeout(5.0))
            assert job.id == ours
            await settle(store, completed(job))
            assert await claim_ids(store) == []
    assert await claim_ids(store) == [theirs.id]


async def test_a_lost_dirty_key_is_no_deadlock(store: Store, other: Other, clock: ManualClock) -> None:
    await open_lease(store, length=10**12)
    await enqueue_with_key(store, 2, "busy")
    await claim_ids(store)
    lost = [(await enqueue_with_key(store, 1, f"key {n}"))[0] for n in range(3)]
    await other.does("DELETE FROM windlass.dirty_keys")
    await other.commits()
    assert await claim_ids(store) == []
    await store.tidy()
    assert await other.does("SELECT count(*) FROM windlass.dirty_keys WHERE key = 'busy'") == [(0,)]
    assert set(await claim_ids(store)) == set(lost)


async def test_a_waiting_job_may_have_a_priority_that_is_new_in_its_queue(store: Store, other: Other) -> None:
    await open_lease(store, length=10**12)
    (id_,) = await enqueue_with_key(store)
    await store.operator.change([id_], JobChange(priority=77))
    assert await claim_ids(store) == [id_]


async def test_admitting_the_first_job_with_a_rate_marks_the_queue_as_rated(store: Store, other: Other) -> None:
    await enqueue_with_key(store)
    await store.jobs.admit(10)
    rated = "SELECT rated FROM windlass.queues WHERE name = 'default'"
    assert await other.does(rated) == [(False,)]
    await other.commits()
    await enqueue_with_key(store, 1, "rated", key_rate=Rate(1, SECOND, 1))
    await store.jobs.admit(10)
    assert await other.does(rated) == [(True,)]
