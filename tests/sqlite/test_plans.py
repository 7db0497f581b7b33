"""Plans: the statements on the hot path walk their index and sort nothing, however many jobs there are."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.sqlite.conftest import Open
from windlass.core.status import Status
from windlass.store.records import JobFilter
from windlass.store.sqlite import look
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.query import sql
from windlass.store.sqlite.store import SqliteStore

SORT = "USE TEMP B-TREE FOR ORDER BY"
TABLES = (
    "SCAN windlass_jobs",
    "SCAN windlass_history",
    "SCAN windlass_tombstones",
    "SCAN job",
    "SCAN windlass_meters",
    "SCAN windlass_samples",
    "SCAN windlass_depths",
    "SCAN windlass_keys",
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
    "lines": "[]",
    "most": 2,
    "worker": "w",
    "after": "",
    "id": "i",
    "attempt": 1,
    "slot": 1,
    "since": 1,
    "until": 2,
    "step": 1,
    "at_most": 1,
    "at_least": 1,
    "before": 1,
    "urgency": 0,
    "from": "",
    "shares": "[]",
    "names": "[]",
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
    "next_head": "windlass_jobs_pending",
    "work": "windlass_jobs_pending",
    "admit": "windlass_jobs_due",
    "next_due": "windlass_jobs_due",
    "held": "windlass_jobs_held",
    "busy": "windlass_jobs_held",
    "held_by": "windlass_jobs_held",
    "claimed": "windlass_jobs_held",
    "orphans": "windlass_jobs_held",
    "cancels": "windlass_jobs_cancelling",
    "unpark": "windlass_jobs_parked",
    "park": "windlass_jobs_pending",
    "due_lines": "windlass_jobs_due",
    "fares": "windlass_jobs_pending",
    "aged": "windlass_jobs_pending",
    "lanes": "windlass_jobs_lane",
    "lane_fares": "windlass_jobs_lane",
    "next_lanes": "windlass_jobs_lane",
    "count_running": "windlass_jobs_held",
    "stepped_aside": "windlass_jobs_slot",
    "prune_gates": "windlass_gates_full",
    "parked_lines": "windlass_jobs_parked",
    "strange_lines": "windlass_jobs_pending",
    "expired": "windlass_jobs_expiring",
    "expired_heads": "windlass_jobs_pending",
    "prune_keys": "windlass_keys_until",
    "due_schedules": "windlass_schedules_due",
    "next_tick": "windlass_schedules_due",
    "prunable": "windlass_history_drop",
    "prune_tombstones": "windlass_tombstones_until",
}

LOOKUPS = [
    "known",
    "running",
    "complete",
    "drop_completed",
    "find",
    "recorded",
    "lease",
    "meter",
    "meters",
    "prune_meters",
    "slots",
    "samples",
    "depths",
    "last_sampled",
    "first_sampled",
    "was_looked_at",
    "prune_samples",
    "prune_depths",
    "key_holders",
    "named_schedules",
    "take_key",
    "changeable",
    "cancel",
    "cancellable",
    "take_slots",
    "run_now",
]
"""Statements that go by primary key alone."""


async def plan(store: SqliteStore, text: str, values: dict[str, Any]) -> list[str]:
    rows = await store._lanes.write(lambda db: db.select("EXPLAIN QUERY PLAN " + text, values), None)
    return [row[3] for row in rows]


async def fill(store: SqliteStore) -> None:
    """Many jobs, and statistics of them: plans that hold only for empty tables are no plans."""

    def work(db: Db) -> None:
        db.select(
            "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 5000) "
            "INSERT INTO windlass_jobs (id, queue, type, payload, status, urgency, rank, run_at, max_attempts, "
            "created_at, updated_at) SELECT format('%08x', value), 'q', 't', '{}', "
            "CASE value % 10 WHEN 0 THEN 'scheduled' WHEN 1 THEN 'running' ELSE 'pending' END, 0, value, value, 3, "
            "0, 0 FROM n"
        )
        db.select("ANALYZE")

    await store._lanes.write(work, None)


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
        "next_head",
        "prunable",
        "prune_tombstones",
        "meters",
        "slots",
        "samples",
        "depths",
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

        look_up(Spy(db._connection, db.clock, db.vouchers))

    await store._lanes.write(work, None)
    return caught[0]


async def listing(store: SqliteStore, wanted: JobFilter) -> list[str]:
    return await looking(store, lambda db: look.list_jobs(db, wanted, 50, None))


async def test_the_newest_failures_are_the_ends_of_two_indexes(opens: Open) -> None:
    store = opens()
    await fill(store)
    steps = await looking(store, lambda db: look.failures(db, 10))
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
