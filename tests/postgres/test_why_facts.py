"""Circumstances under a held snapshot: counting begins at the watermarks."""

import json
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.postgres.test_watermarks import raise_watermarks
from tests.support.clock import ManualClock
from tests.support.seed import enqueue, enqueue_one, open_lease, request
from windlass.core.flow.queue import Queue
from windlass.core.ids import JobId
from windlass.core.jobs.outcome import completed
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.postgres.connection.db import numbered
from windlass.store.postgres.connection.profile import PLAIN
from windlass.store.postgres.connection.session import SETTINGS
from windlass.store.postgres.limits import watermarks
from windlass.store.records import RunnerEnd
from windlass.store.why_facts import SortKey, values_of


@pytest.fixture(autouse=True)
def _busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests look more often than a coordinator may, however slow the machine."""
    monkeypatch.setattr(watermarks, "SHARE", 0)


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
    await raise_watermarks(store)
    after = await _pages(store, connection, wanted, clock)
    assert after * 5 < before, (before, after)


async def _pages(store: Store, connection: Any, id_: JobId, clock: ManualClock) -> int:
    """How many pages it takes to find its place."""
    for name, value in SETTINGS.items():
        await connection.execute(f"SET {name} = '{value}'")
    (job,) = await store.operator.get([id_])
    assert job is not None
    values = values_of(job, Queue(name="default"), SortKey(0, clock.wall()), clock.wall())
    statement = numbered(PLAIN.filled(PLAIN.statement("queue_position")), server_clock=False)
    text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement.text}"
    rows = await connection.fetch(text, *[values[name] for name in statement.names])
    plan = json.loads(rows[0][0])[0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
