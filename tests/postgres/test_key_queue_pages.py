"""Under a held snapshot neither marks nor lines make claims slower: by the pages that are read, not by the time."""

import json
from typing import Any

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import completed, new_job, open_lease, request
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.postgres.connection.db import numbered
from windlass.store.postgres.connection.profile import PLAIN
from windlass.store.postgres.connection.session import SETTINGS
from windlass.store.postgres.limits.key_queue import KeyQueues
from windlass.store.postgres.store import PostgresStore

ROUNDS = 15
KEYS = 200


async def test_a_claim_does_not_scan_dirty_keys_that_were_taken(
    store: Store, clock: ManualClock, other: Other, connection: Any
) -> None:
    lines = await _work_under_a_held_snapshot(store, clock, other)
    values = _claim_values(clock)
    walking = await _pages(connection, "claim", {**values, "since": 0})
    stepping = await _pages(connection, "claim", {**values, "since": lines.since(["default"])})
    assert stepping + 10 < walking, (stepping, walking)
    assert await _pages(connection, "claim", {**values, "since": 2**62}) >= stepping - 5, "hardly more than for none"


async def test_an_admission_does_not_scan_dirty_keys_that_were_taken(
    store: Store, clock: ManualClock, other: Other, connection: Any
) -> None:
    lines = await _work_under_a_held_snapshot(store, clock, other)
    values = {"queue": "default", "limit": 500, "max_admitted": 100, "beyond": 0, "now": clock.wall()}
    walking = await _pages(connection, "admit_waiting", {**values, "since": 0})
    stepping = await _pages(connection, "admit_waiting", {**values, "since": lines.since(["default"])})
    assert stepping * 3 < walking, (stepping, walking)


async def _work_under_a_held_snapshot(store: Store, clock: ManualClock, other: Other) -> KeyQueues:
    """Jobs of many keys come, run and go; what they leave behind cannot be cleaned away."""
    assert isinstance(store, PostgresStore)
    await open_lease(store, length=10**12)
    await other.does("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await other.does("SELECT 1")  # from here on it holds its snapshot
    for _ in range(ROUNDS):
        await store.jobs.enqueue([new_job(concurrency_key=f"key {n}") for n in range(KEYS)])
        clock.advance(SECOND)
        jobs = await store.jobs.claim(request(limit=1000, most=1000))
        assert len(jobs) == KEYS
        await store.jobs.settle([completed(job, None) for job in jobs])
    assert await store.jobs.claim(request()) == []
    return store.jobs._claims.key_queues


def _claim_values(clock: ManualClock) -> dict[str, Any]:
    """Of a claim that begins where nothing is dead but marks."""
    return {
        "runner": "r1", "claim": 10**9, "first": True, "over": [], "queues": ["default"], "types": ["t"], "limit": 10,
        "returns": 0, "seen_queues": ["default"], "seen_sort_priorities": [0], "seen_ranks": [clock.wall() + SECOND],
        "seen_ids": ["00000000-0000-0000-0000-000000000000"], "now": clock.wall(),
    }  # fmt: skip


async def _pages(connection: Any, name: str, values: dict[str, Any]) -> int:
    """How many pages it reads; what it does is undone."""
    for setting, value in SETTINGS.items():
        await connection.execute(f"SET {setting} = '{value}'")
    statement = numbered(PLAIN.filled(PLAIN.statement(name)), server_clock=False)
    transaction = connection.transaction()
    await transaction.start()
    text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.text}"
    rows = await connection.fetch(text, *[values[name] for name in statement.names])
    await transaction.rollback()
    plan = json.loads(rows[0][0])[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
