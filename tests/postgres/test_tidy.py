"""tidy: what it costs with very many places, and what it leaves alone."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.postgres.other import Other
from tests.postgres.test_watermarks import raise_watermarks
from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, enqueue, enqueue_one, open_lease
from windlass.core.moments import SECOND
from windlass.core.stats.meter import Meter
from windlass.store.contract import Store
from windlass.store.postgres.connection.db import Statement
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.limits import watermarks

PLACES = 2500
MANY_PLACES = f"""
INSERT INTO windlass.watermarks (queue, sort_priority)
SELECT 'queue ' || n, 0 FROM generate_series(1, {PLACES}) AS n
"""
RANKS = "SELECT queue, rank FROM windlass.watermarks ORDER BY queue"


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement that a session of ours sends from now on."""
    sent: list[str] = []
    rows, run = Session.rows, Session.run

    async def counted_rows(self: Session, statement: Statement, values: Mapping[str, Any]) -> list[Any]:
        sent.append(statement.text)
        return await rows(self, statement, values)

    async def counted_run(self: Session, statement: Statement, values: Mapping[str, Any]) -> int:
        sent.append(statement.text)
        return await run(self, statement, values)

    monkeypatch.setattr(Session, "rows", counted_rows)
    monkeypatch.setattr(Session, "run", counted_run)
    return sent


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, a turn sees all places, and the next one comes at once."""
    monkeypatch.setattr(watermarks, "SHARE", 0)
    monkeypatch.setattr(watermarks, "MAX_TURN", 3600 * SECOND)


async def test_very_many_places_are_raised_by_a_few_statements(
    store: Store, clock: ManualClock, other: Other, trips: list[str]
) -> None:
    await enqueue_one(store)
    await other.does(MANY_PLACES)
    await other.commits()
    clock.advance(10 * SECOND)
    trips.clear()
    await raise_watermarks(store)
    assert len(trips) < 20
    assert await other.does("SELECT count(*) FROM windlass.watermarks WHERE rank > 0") == [(PLACES + 1,)]


async def test_what_one_turn_has_no_time_for_is_left_to_the_next(
    store: Store, clock: ManualClock, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watermarks, "PORTION", 1000)
    monkeypatch.setattr(watermarks, "MAX_TURN", 0)
    raised = "SELECT count(*) FROM windlass.watermarks WHERE rank > 0"
    await enqueue_one(store)
    await other.does(MANY_PLACES)
    await other.commits()
    clock.advance(10 * SECOND)
    counts = []
    for _ in range(4):
        await store.tidy()
        counts += await other.does(raised)
        await other.commits()
    assert counts == [(0,), (1000,), (2000,), (PLACES + 1,)]


async def test_watermarks_of_idle_queues_are_written_only_when_they_are_far_behind(
    store: Store, clock: ManualClock, other: Other
) -> None:
    for queue in ("busy", "idle"):
        await enqueue_one(store, queue=queue, delay=3600 * SECOND)
    clock.advance(60 * SECOND)
    await raise_watermarks(store)
    first = clock.wall() - SECOND
    clock.advance(10 * SECOND)
    await store.stats.record([Meter(queue="busy", type="t", completed=1)])
    await raise_watermarks(store)
    assert await other.does(RANKS) == [("busy", first + 10 * SECOND), ("idle", first)]
    clock.advance(watermarks.IDLE)
    await raise_watermarks(store)
    assert await other.does(RANKS) == [("busy", clock.wall() - SECOND), ("idle", clock.wall() - SECOND)]


async def test_a_watermark_of_an_idle_queue_is_never_above_what_is_pending(store: Store, clock: ManualClock) -> None:
    await open_lease(store, length=10**12)
    ids = await enqueue(store, 2)
    clock.advance(60 * SECOND)
    await raise_watermarks(store)
    assert await claim_ids(store) == ids
