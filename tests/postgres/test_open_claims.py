"""Rows of `claims`: what a runner holds, without an index on the jobs that a claim would have to change."""

import asyncio
from typing import Any

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import LEASE, claim_ids, completed, enqueue, open_lease, request
from windlass.core.flow.queue import QueueSettings
from windlass.core.moments import SECOND
from windlass.store.contract import Store

INDEXED = """
SELECT attribute.attname FROM pg_index AS index
JOIN pg_depend AS uses ON uses.classid = 'pg_class'::regclass AND uses.objid = index.indexrelid
    AND uses.refobjid = index.indrelid
JOIN pg_attribute AS attribute ON attribute.attrelid = index.indrelid AND attribute.attnum = uses.refobjsubid
WHERE index.indrelid = 'windlass.jobs'::regclass
"""
CLAIMED = {"status", "attempt", "worker", "claim", "claimed_at", "started_at"}
PAGES = "SELECT id, (ctid::text::point)[0] FROM windlass.jobs"
HELD = "SELECT claim, cardinality(jobs) FROM windlass.claims WHERE runner = 'r1' ORDER BY claim"


async def test_no_index_has_a_column_that_a_claim_changes(store: Store, connection: Any) -> None:
    indexed = {row[0] for row in await connection.fetch(INDEXED)}
    assert {"id", "queue", "rank", "stage"} <= indexed
    assert not indexed & CLAIMED


async def test_a_claimed_job_stays_on_its_page(store: Store, connection: Any) -> None:
    await enqueue(store, 500, payload='"' + "x" * 64 + '"')
    await open_lease(store, "host:12345:0198f3c2a1b4/1")
    before = dict(await connection.fetch(PAGES))
    assert len(await claim_ids(store, "host:12345:0198f3c2a1b4/1", limit=500, most=500)) == 500
    assert dict(await connection.fetch(PAGES)) == before


async def test_the_row_of_a_claim_shrinks_as_its_jobs_end_and_then_goes(store: Store, connection: Any) -> None:
    await enqueue(store, 12)
    await open_lease(store)
    jobs = await store.jobs.claim(request(claim=1, limit=8))
    await store.jobs.settle([completed(job) for job in jobs[:7]])
    await store.jobs.claim(request(claim=2, limit=2))
    assert [tuple(row) for row in await connection.fetch(HELD)] == [(1, 1), (2, 2)]
    assert [each.id for each in await store.jobs.held("r1") if each.id == jobs[7].id] == [jobs[7].id]
    await store.jobs.settle([completed(jobs[7])])
    await store.jobs.claim(request(claim=3, limit=2))
    assert [tuple(row) for row in await connection.fetch(HELD)] == [(2, 2), (3, 2)]


async def test_a_job_that_ends_while_the_row_is_shortened_leaves_no_row(
    store: Store, connection: Any, other: Other
) -> None:
    await enqueue(store, 6)
    await open_lease(store)
    jobs = await store.jobs.claim(request(claim=1, limit=4))
    await store.jobs.settle([completed(job) for job in jobs[:3]])
    await other.does("SELECT FROM windlass.claims FOR UPDATE")
    claim = asyncio.ensure_future(store.jobs.claim(request(claim=2, limit=1)))
    await other.is_waited_for()
    await store.jobs.settle([completed(jobs[3])])
    await other.commits()
    await claim
    await store.jobs.claim(request(claim=3, limit=1))
    assert [tuple(row) for row in await connection.fetch(HELD)] == [(2, 1), (3, 1)]


async def test_a_claim_that_is_repeated_does_not_wait_for_rows_that_its_first_try_holds(
    store: Store, other: Other
) -> None:
    await enqueue(store, 6)
    await open_lease(store)
    jobs = await store.jobs.claim(request(claim=1, limit=4))
    await store.jobs.settle([completed(job) for job in jobs[:3]])
    await other.does("SELECT FROM windlass.claims FOR UPDATE")
    broken_off = asyncio.ensure_future(store.jobs.claim(request(claim=2, limit=1)))
    await other.is_waited_for()
    broken_off.cancel()
    await asyncio.wait([broken_off])
    assert len(await store.jobs.claim(request(claim=2, limit=1))) == 1
    await store.jobs.settle([completed(jobs[3])])
    assert len(await store.jobs.claim(request(claim=3, limit=1))) == 1


async def test_a_row_that_its_live_runner_does_not_know_of_goes_too(
    store: Store, connection: Any, clock: ManualClock
) -> None:
    await store.queues.change("default", QueueSettings(max_concurrency=10))
    await enqueue(store, 3)
    await open_lease(store)
    jobs = await store.jobs.claim(request(claim=1, limit=2))
    await store.jobs.settle([completed(job) for job in jobs])
    await store.queues.pause("default", None)
    assert await store.jobs.claim(request(claim=2)) == []  # nothing is shortened by a claim from a paused queue
    await store.queues.resume("default")
    assert len(await store.jobs.claim(request(claim=3))) == 1
    for _ in range(8):
        await store.leases.renew("w1", ["r1"], LEASE)
        await store.leases.rescue(100)
        clock.advance(10 * SECOND)
    assert [tuple(row) for row in await connection.fetch(HELD)] == [(3, 1)]


async def test_a_wrong_guess_that_a_claim_is_over_loses_no_job(store: Store, connection: Any) -> None:
    await enqueue(store, 3)
    await open_lease(store)
    jobs = await store.jobs.claim(request(claim=1, limit=3))
    await store.jobs.settle([completed(jobs[0])])
    assert await connection.fetchval("SELECT windlass.shorten_claims('r1', ARRAY[1, 7])") == 0
    assert {each.id for each in await store.jobs.held("r1")} == {job.id for job in jobs[1:]}


async def test_the_claims_of_a_dead_runner_go_after_its_jobs(
    store: Store, connection: Any, clock: ManualClock
) -> None:
    await enqueue(store, 3)
    await open_lease(store)
    await claim_ids(store)
    clock.advance(2 * LEASE)
    await open_lease(store, "r2")
    for _ in range(6):
        await store.leases.rescue(100)
        clock.advance(LEASE // 2)
    assert await connection.fetch(HELD) == []
    await open_lease(store, "r3")
    assert len(await claim_ids(store, "r3", claim=1)) == 3
