"""Plans: the statements on the hot path walk their index and sort nothing, however many jobs there are."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.sqlite.conftest import Open
from windlass.core.status import Status
from windlass.store.drive import drive
from windlass.store.records import JobFilter
from windlass.store.sql import read_jobs
from windlass.store.sqlite.db import Db, SharedDb, sql
from windlass.store.sqlite.store import SqliteStore

SORT = "USE TEMP B-TREE FOR ORDER BY"
TABLES = (
    "SCAN windlass_jobs",
    "SCAN windlass_history",
    "SCAN windlass_tombstones",
    "SCAN job",
    "SCAN windlass_meters",
    "SCAN windlass_samples",
    "SCAN windlass_queue_depths",
    "SCAN windlass_idempotency_keys",
    "SCAN held",
    "SCAN windlass_schedules",
)
"""The tables that grow with the jobs; queues, leases and workers are few."""
VALUES: dict[str, Any] = {
    "queue": "q",
    "queues": '["q"]',
    "hash": "h",
    "keys": "[]",
    "job": "j",
    "keep": 1,
    "types": '["t"]',
    "type": "t",
    "now": 1,
    "limit": 1,
    "runner": "r",
    "claim": 1,
    "ids": "[]",
    "batch": "[]",
    "key_queues": "[]",
    "max_jobs": 2,
    "worker": "w",
    "after": "",
    "id": "i",
    "attempt": 1,
    "key_slot": 1,
    "rows": "[]",
    "interval_start": 1,
    "since": 1,
    "until": 2,
    "step": 1,
    "at_most": 1,
    "at_least": 1,
    "before": 1,
    "sort_priority": 0,
    "from": "",
    "jobs_by_tenant": "[]",
    "names": "[]",
    "times": "both",
}

WALKS = {
    # statement: the index that it must walk
    "claim": "windlass_jobs_pending",
    "head_types": "windlass_jobs_pending",
    "count_pending": "windlass_jobs_pending",
    "count_delayed": "windlass_jobs_due",
    "next_parked": "windlass_jobs_parked",
    "count_parked": "windlass_jobs_parked",
    "next_queue": "windlass_jobs_pending",
    "next_priority": "windlass_jobs_pending",
    "has_work": "windlass_jobs_pending",
    "admit": "windlass_jobs_due",
    "next_due": "windlass_jobs_due",
    "held": "windlass_jobs_held",
    "jobs_by_worker": "windlass_jobs_held",
    "running_of": "windlass_jobs_held",
    "claimed": "windlass_jobs_held",
    "runners_without_lease": "windlass_jobs_held",
    "cancels": "windlass_jobs_cancelling",
    "parked": "windlass_jobs_parked",
    "park": "windlass_jobs_pending",
    "due_key_queues": "windlass_jobs_due",
    "start_costs": "windlass_jobs_pending",
    "aged": "windlass_jobs_pending",
    "tenant_queues": "windlass_jobs_tenant_queue",
    "tenant_costs": "windlass_jobs_tenant_queue",
    "next_fair_priority": "windlass_jobs_tenant_queue",
    "count_running": "windlass_jobs_held",
    "throttled": "windlass_jobs_key_slot",
    "prune_token_buckets": "windlass_token_buckets_full",
    "parked_keys": "windlass_jobs_pending",
    "expired": "windlass_jobs_expiring",
    "expired_heads": "windlass_jobs_pending",
    "prune_idempotency_keys": "windlass_idempotency_keys_until",
    "due_schedules": "windlass_schedules_due",
    "next_tick": "windlass_schedules_due",
    "prunable": "windlass_history_drop",
    "prune_tombstones": "windlass_tombstones_until",
}

LOOKUPS = [
    "known_ids",
    "queue_state",
    "running",
    "complete",
    "drop_live_batch",
    "find_job",
    "recorded",
    "lease",
    "lock_meters",
    "recent_meters",
    "prune_meters",
    "meters_between",
    "samples",
    "queue_depths",
    "last_sampled",
    "first_sampled",
    "has_depths",
    "prune_samples",
    "prune_queue_depths",
    "key_holders",
    "named_schedules",
    "take_key",
    "changeable",
    "cancel",
    "cancellable",
    "assign_key_slots",
    "run_now",
    "unpark",
]
"""Statements that go by primary key alone."""


async def plan(store: SqliteStore, text: str, values: dict[str, Any]) -> list[str]:
    rows = await store._threads.write(lambda db: db.select("EXPLAIN QUERY PLAN " + text, values), None)
    return [row[3] for row in rows]


async def fill(store: SqliteStore) -> None:
    """Many jobs, and statistics of them: plans that hold only for empty tables are no plans."""

    def work(db: Db) -> None:
        db.select(
            "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 5000) "
            "INSERT INTO windlass_jobs (id, queue, type, payload, status, sort_priority, rank, run_at, max_attempts, "
            "created_at, updated_at) SELECT format('%08x', value), 'q', 't', '{}', "
            "CASE value % 10 WHEN 0 THEN 'scheduled' WHEN 1 THEN 'running' ELSE 'pending' END, 0, value, value, 3, "
            "0, 0 FROM n"
        )
        db.select("ANALYZE")

    await store._threads.write(work, None)


def statement(name: str) -> tuple[str, dict[str, Any]]:
    text = sql(name)
    return text, {key: value for key, value in VALUES.items() if f":{key}" in text}


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "with statistics"])
@pytest.mark.parametrize("name", WALKS)
async def test_a_statement_walks_its_index(opens: Open, name: str, filled: bool) -> None:
    store = opens()
    if filled:
        await fill(store)
    steps = await plan(store, *statement(name))
    assert any(WALKS[name] in step for step in steps), steps
    assert not [step for step in steps if step.startswith(TABLES) and "INDEX" not in step], steps


@pytest.mark.parametrize(
    "name",
    [
        "claim",
        "admit",
        "next_due",
        "next_queue",
        "next_priority",
        "prunable",
        "prune_tombstones",
        "recent_meters",
        "meters_between",
        "samples",
        "queue_depths",
        "expired",
    ],
)
async def test_a_walk_along_the_index_sorts_nothing(opens: Open, name: str) -> None:
    store = opens()
    await fill(store)
    steps = await plan(store, *statement(name))
    assert not [step for step in steps if SORT in step], steps


@pytest.mark.parametrize("name", LOOKUPS)
async def test_a_lookup_goes_by_key(opens: Open, name: str) -> None:
    store = opens()
    await fill(store)
    steps = await plan(store, *statement(name))
    assert not [step for step in steps if step.startswith(TABLES)], steps


async def looking(store: SqliteStore, look_up: Callable[[Db], Any]) -> list[str]:
    """The plan of what a look asks, caught on its way."""
    caught: list[list[str]] = []

    def work(db: Db) -> None:
        class Spy(Db):
            def select(self, text: str, values: Any = ()) -> list[Any]:
                caught.append([row[3] for row in db.select("EXPLAIN QUERY PLAN " + text, values)])
                return []

        look_up(Spy(db._connection, db.clock, db.liveness_locks))

    await store._threads.write(work, None)
    return caught[0]


async def listing(store: SqliteStore, wanted: JobFilter) -> list[str]:
    return await looking(store, lambda db: drive(read_jobs.list_jobs(SharedDb(db), wanted, 50, None)))


async def test_the_newest_failures_are_the_ends_of_two_indexes(opens: Open) -> None:
    store = opens()
    await fill(store)
    steps = await looking(store, lambda db: drive(read_jobs.failures(SharedDb(db), 10)))
    walked = [step for step in steps if step.startswith("S") and "windlass" in step]
    assert ["windlass_jobs_failed" in walked[0], "windlass_history_dead" in walked[1]] == [True, True], steps
    assert not [step for step in steps if SORT in step], steps


async def test_dead_jobs_are_listed_by_their_own_index_among_millions_of_completed_ones(opens: Open) -> None:
    steps = await listing(opens(), JobFilter(status=(Status.DEAD,)))
    assert any("windlass_history_ended_badly" in step for step in steps), steps
    assert not [step for step in steps if "windlass_jobs" in step]


async def test_the_newest_jobs_are_listed_without_sorting_all_of_them(opens: Open) -> None:
    store = opens()
    await fill(store)
    steps = await listing(store, JobFilter())
    assert not [step for step in steps if SORT in step], steps
