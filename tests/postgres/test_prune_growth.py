"""prune keeps up: what comes faster than one portion a minute is dropped or added up in several, first the counts."""

from typing import Any

import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import enqueue_one
from windlass.core.moments import SECOND
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.postgres.verbs import prune

COUNTS = """
INSERT INTO windlass.history_counts SELECT 'q' || n %% %s, 'completed', -1, 1 FROM generate_series(1, %s) AS n
"""
SUMMED = "SELECT count(*) < 500, sum(jobs)::integer FROM windlass.history_counts"
OVER = {
    "idempotency_keys": """
        INSERT INTO windlass.idempotency_keys SELECT 'q', n, gen_random_uuid(), 1 FROM generate_series(1, 50) AS n
    """,
    "result_waits": "INSERT INTO windlass.result_waits SELECT gen_random_uuid(), 'c', 1 FROM generate_series(1, 50)",
    "token_buckets": "INSERT INTO windlass.token_buckets SELECT 'q', n, 0, 1, 1, 1 FROM generate_series(1, 50) AS n",
}


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(prune, "MAX_REPEATING", 3600 * SECOND)
    monkeypatch.setattr(prune, "MAX_ROWS_TO_SUM", 500)


async def test_more_counts_than_one_statement_adds_up_are_added_up(store: Store, other: Other) -> None:
    await other.does(COUNTS, 3, 2000)
    await other.commits()
    await store.operator.prune(10)
    assert await other.does(SUMMED) == [(True, 2000)]


async def test_counts_of_very_many_queues_are_not_added_up_for_ever(store: Store, other: Other) -> None:
    await other.does(COUNTS, 2000, 2000)
    await other.commits()
    await store.operator.prune(10)
    assert await other.does("SELECT count(*), sum(jobs)::integer FROM windlass.history_counts") == [(2000, 2000)]


async def test_counts_are_added_up_also_where_nothing_else_can_be_done(
    store: Store, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*given: Any) -> None:
        raise StoreUnavailable("no")

    await other.does(COUNTS, 3, 2000)
    await other.commits()
    monkeypatch.setattr(prune, "_prune_rows", fails)
    with pytest.raises(StoreUnavailable):
        await store.operator.prune(10)
    assert await other.does(SUMMED) == [(True, 2000)]


@pytest.mark.parametrize("table", OVER)
async def test_all_that_is_over_is_dropped_by_one_call(
    store: Store, clock: ManualClock, other: Other, table: str
) -> None:
    await enqueue_one(store)
    await other.does(OVER[table])
    await other.commits()
    await store.operator.prune(10)
    assert await other.does(f"SELECT count(*) FROM windlass.{table}") == [(0,)]


async def test_counts_that_one_call_has_no_time_for_are_added_up_by_the_next_tidy(
    store: Store, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "MAX_REPEATING", 0)
    await other.does(COUNTS, 3, 2000)
    await other.commits()
    await store.operator.prune(10)
    for _ in range(4):
        await store.tidy()
    assert await other.does(SUMMED) == [(True, 2000)]


@pytest.mark.parametrize("table", OVER)
async def test_what_one_call_has_no_time_to_drop_is_dropped_by_the_next_tidy(
    store: Store, other: Other, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setattr(prune, "MAX_REPEATING", 0)
    await enqueue_one(store)
    await other.does(OVER[table])
    await other.commits()
    await store.operator.prune(10)
    for _ in range(5):
        await store.tidy()
    assert await other.does(f"SELECT count(*) FROM windlass.{table}") == [(0,)]
