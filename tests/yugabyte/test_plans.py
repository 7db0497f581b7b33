"""Plans of the profile's statements: what a bucketed index is read for is bounded, bucket by bucket."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.support.servers.places import postgres_place
from tests.support.stores import postgres_url, yugabyte_url
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.open import open_store
from windlass.store.postgres.connection.db import Statement, Texts, numbered
from windlass.store.postgres.connection.profile import PROFILES, YUGABYTEDB
from windlass.store.postgres.connection.session import SETTINGS, Session
from windlass.store.records import JobFilter
from windlass.store.sql.statements import statements_of

COUNTS_ALL = {"counts", "examine_hidden", "examine_history_counts"}
"""They count what there is, whatever its bucket."""
OF_PARTITIONS = {"expired_tombstones", "drop_one_by_one"}
"""Only where there are partitions."""
CHILDREN = "SELECT id FROM windlass.history WHERE status = 'completed' LIMIT 500"
JOBS = """
INSERT INTO windlass.jobs (
    id, rank, run_at, created_at, updated_at, sort_priority, max_attempts, queue, type, payload, status, reason,
    expires_at, concurrency_key, key_slot, tenant_queue
)
SELECT gen_random_uuid(), i, i, i, i, 0, 3, 'q' || i % 3, 't', '{}',
    (ARRAY['pending', 'scheduled', 'blocked'])[1 + i % 3],
    CASE i % 3 WHEN 2 THEN 'waits for its concurrency key' END, CASE i % 2 WHEN 0 THEN i END,
    CASE i % 3 WHEN 0 THEN NULL ELSE 'k' || i % 1000 END, CASE i % 3 WHEN 1 THEN i END,
    CASE i % 3 WHEN 0 THEN 't' || i % 50 END
FROM generate_series(1, 20000) AS i;
INSERT INTO windlass.history (
    id, partition, queue, type, payload, status, sort_priority, run_at, attempt, max_attempts, failures, crashes,
    rescues, suspicions, requeues, snoozes, created_at, updated_at, finished_at, drop_at, timeout, cancel_requested
)
SELECT gen_random_uuid(), CASE i % 5 WHEN 0 THEN 100 ELSE 101 END, 'q' || i % 3, 't', '{}',
    CASE i % 5 WHEN 0 THEN 'dead' ELSE 'completed' END, 0, i, 1, 3, 0, 0, 0, 0, 0, 0, i, i, i, i, 0, false
FROM generate_series(1, 20000) AS i;
INSERT INTO windlass.tombstones (id, partition, attempt, until) SELECT gen_random_uuid(), 0, 1, i
FROM generate_series(1, 20000) AS i;
INSERT INTO windlass.watermarks (queue, sort_priority, bucket) SELECT 'q' || i, 0, bucket
FROM generate_series(0, 2) AS i CROSS JOIN windlass.due_watermark;
ANALYZE
"""

OF_PLAIN = """
INSERT INTO windlass.jobs (
    id, rank, run_at, created_at, updated_at, sort_priority, max_attempts, queue, type, payload, status, tenant_queue
)
SELECT gen_random_uuid(), i, i, i, i, 0, 3, 'q' || i % 3, 't', '{}', 'pending',
    CASE i % 2 WHEN 0 THEN 't' || i % 50 END
FROM generate_series(1, 20000) AS i;
INSERT INTO windlass.watermarks (queue, sort_priority) SELECT 'q' || i, 0 FROM generate_series(0, 2) AS i;
ANALYZE
"""


@pytest.fixture
async def full(tmp_path: Path) -> AsyncIterator[Any]:
    """A connection as workers have it, to tables with many rows."""
    yugabyte_url(tmp_path)
    connection = await asyncpg.connect(postgres_place(tmp_path), server_settings=SETTINGS)
    await connection.execute(JOBS)
    yield connection
    await connection.close()


async def test_no_statement_reads_a_bucketed_index_across_its_buckets(full: Any) -> None:
    bucketed = await bucketed_indexes(full)
    assert len(bucketed) == 8
    texts = Texts("windlass", None, YUGABYTEDB)
    texts.buckets = 4
    for name in sorted(statements_of("postgres", YUGABYTEDB.name).keys() - COUNTS_ALL - OF_PARTITIONS):
        assert await across_buckets(full, texts.named(name, numbered), bucketed) == set(), name


@pytest.mark.parametrize("profile", ["yugabyte", ""])
@pytest.mark.parametrize("name", ["waiting_tenants", "queue_position", "tenants", "tenant_candidates"])
async def test_the_index_of_tenants_is_read_for_one_queue_only(tmp_path: Path, name: str, profile: str) -> None:
    """Its first column has a collation of its own: a condition without that passes it by."""
    (yugabyte_url if profile else postgres_url)(tmp_path)
    connection = await asyncpg.connect(postgres_place(tmp_path), server_settings=SETTINGS)
    await connection.execute(JOBS if profile else OF_PLAIN)
    texts = Texts("windlass", None, PROFILES[profile])
    texts.buckets = 4
    plan = await planned(connection, texts.named(name, numbered))
    await connection.close()
    read = [node["Index Cond"] for node in nodes(plan) if node.get("Index Name") == "jobs_tenant_queue"]
    assert read != []
    assert [each for each in read if "(queue)::text" not in each] == []


LISTS = [
    JobFilter(),
    JobFilter(status=(Status.PENDING, Status.DEAD)),
    JobFilter(queue="q1", type="t"),
    JobFilter(status=(Status.COMPLETED,), tag="t"),
    JobFilter(status=(Status.CANCELLED,), tenant="t"),
    JobFilter(parent=JobId("00000000-0000-7000-8000-000000000000")),
]


@pytest.mark.parametrize("wanted", LISTS)
async def test_no_list_reads_a_bucketed_index_across_its_buckets(
    full: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: JobFilter
) -> None:
    found, rows = list[Statement](), Session.rows

    async def noted(self: Session, statement: Statement, values: Any) -> list[Any]:
        found.append(statement)
        return await rows(self, statement, values)

    store = open_store(yugabyte_url(tmp_path))
    await store.operator.counts()
    monkeypatch.setattr(Session, "rows", noted)
    page = await store.operator.list(wanted, 50, None)
    await store.operator.list(wanted, 50, page.next_cursor or "01a00000-0000-7000-8000-000000000000")
    await store.operator.select(wanted, 50, None)
    await store.operator.failures(50)
    await store.close()
    assert len(found) >= 4
    for statement in found:
        assert await across_buckets(full, statement, await bucketed_indexes(full)) == set(), statement.text


async def test_a_page_of_children_reads_each_once(full: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once per bucket: the index on the parent has no buckets."""
    parent, rows, read = JobId("00000000-0000-7000-8000-000000000000"), Session.rows, list[int]()
    await full.execute(f"UPDATE windlass.history SET parent = '{parent}' WHERE id = ANY(ARRAY({CHILDREN})); ANALYZE")

    async def measured(self: Session, statement: Statement, values: Any) -> list[Any]:
        explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.text}"
        plan = json.loads(await full.fetchval(explained, *[values[name] for name in statement.names]))[0]["Plan"]
        read.append(sum(each["Actual Rows"] * each["Actual Loops"] for each in nodes(plan) if "Index Name" in each))
        read[-1] += sum(each.get("Rows Removed by Filter", 0) * each["Actual Loops"] for each in nodes(plan))
        return await rows(self, statement, values)

    store = open_store(yugabyte_url(tmp_path))
    await store.operator.counts()
    monkeypatch.setattr(Session, "rows", measured)
    page = await store.operator.list(JobFilter(parent=parent), 100, None)
    assert len(page) == 100
    await store.operator.select(JobFilter(parent=parent), 100, None)
    await store.close()
    assert read == [100, 100]


async def bucketed_indexes(connection: Any) -> set[str]:
    found = await connection.fetch(
        "SELECT indexname FROM pg_indexes WHERE schemaname = 'windlass' AND indexdef LIKE '%(bucket,%'"
    )
    return {name for (name,) in found}


async def across_buckets(connection: Any, statement: Statement, bucketed: set[str]) -> set[str]:
    """The bucketed indexes that a generic plan of it reads without a bucket."""
    return {
        node["Index Name"]
        for node in nodes(await planned(connection, statement))
        if node.get("Index Name") in bucketed and "bucket" not in node.get("Index Cond", "")
    }


async def planned(connection: Any, statement: Statement) -> dict[str, Any]:
    """The generic plan of a statement."""
    await connection.execute(f"PREPARE planned AS {statement.text}")
    values = f"({', '.join(['NULL'] * len(statement.names))})" if statement.names else ""
    plan = json.loads(await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE planned{values}"))[0]["Plan"]
    await connection.execute("DEALLOCATE planned")
    return dict(plan)


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)
