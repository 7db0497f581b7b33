"""Circumstances under a held snapshot: counting begins at the floors."""

import json
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.postgres.test_floors import raise_floors
from tests.support.clock import ManualClock
from tests.support.seed import enqueue, enqueue_one, open_lease, request
from windlass.core.ids import JobId
from windlass.core.moments import SECOND
from windlass.core.outcome import completed
from windlass.core.queue import Queue
from windlass.store.circumstances import Standing, values_of
from windlass.store.contract import Store
from windlass.store.postgres import floors
from windlass.store.postgres.query import numbered, sql
from windlass.store.postgres.session import SETTINGS
from windlass.store.records import RunnerEnd


@pytest.fixture(autouse=True)
def _busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests look more often than a coordinator may, however slow the machine."""
    monkeypatch.setattr(floors, "SHARE", 0)


async def test_what_is_before_a_job_is_counted_without_a_walk_past_what_is_dead(
    store: Store, clock: ManualClock, other: Other, connection: Any
) -> None:
    """By pages, not by time. The runners are gone: what one that lives has held before, it does walk past."""
    await other.does("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await other.does("SELECT 1")  # from here on it holds its snapshot
    for number in range(20):
        runner = await open_lease(store, f"r{number}", length=10**12)
        await enqueue(store, 250)
        clock.advance(SECOND)
        jobs = await store.jobs.claim(request(runner, limit=1000, most=1000))
        await store.jobs.settle([completed(job, None) for job in jobs])
        await store.leases.end(RunnerEnd(runner=runner, started=frozenset(), crashed=False))
    wanted = await enqueue_one(store)
    clock.advance(10 * SECOND)
    before = await _pages(store, connection, wanted, clock)
    await raise_floors(store)
    after = await _pages(store, connection, wanted, clock)
    assert after * 5 < before, (before, after)


async def _pages(store: Store, connection: Any, id_: JobId, clock: ManualClock) -> int:
    """How many pages it takes to find its place."""
    for name, value in SETTINGS.items():
        await connection.execute(f"SET {name} = '{value}'")
    (job,) = await store.operator.get([id_])
    assert job is not None
    values = values_of(job, Queue(name="default"), Standing(0, clock.wall()), clock.wall())
    statement = numbered(sql("place"), server_clock=False)
    text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.text}"
    rows = await connection.fetch(text, *[values[name] for name in statement.names])
    plan = json.loads(rows[0][0])[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
