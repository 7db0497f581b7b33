"""Pages: looking for rare jobs among many ends after a bounded walk, and goes on with the next page."""

from typing import Any

import pytest

from tests.sqlite.conftest import Open
from tests.support.seed import put
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.records import JobFilter
from windlass.store.sql import read_jobs
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.store import SqliteStore

RARE: list[dict[str, Any]] = [
    {"tag": "x"},
    {"type": "rare"},
    {"queue": "rare"},
    {"tenant": "rare"},
    {"tag": "x", "status": (Status.PENDING, Status.COMPLETED)},
    {"tag": "x", "status": (Status.PENDING,)},
    {"tag": "x", "status": (Status.COMPLETED, Status.DEAD)},
    {"tag": "x", "status": (Status.DEAD,)},
    {"status": (Status.SCHEDULED,)},
    {"status": (Status.DEAD,)},
    {},
]


async def fill(store: SqliteStore) -> list[JobId]:
    """Twenty-four jobs; every eighth is in some way special."""
    statuses = [Status.COMPLETED, Status.DEAD, Status.PENDING, Status.SCHEDULED]
    ids = []
    for n in range(24):
        if n % 8 < 2:
            rare = {"type": "rare", "queue": "rare", "tenant": "rare"}
            ids.append(await put(store, statuses[n // 8], tags=("x",), **rare))
        else:
            ids.append(await put(store, statuses[n % 4]))
    return ids


async def pages(store: SqliteStore, wanted: JobFilter) -> list[list[JobId]]:
    """Every page."""
    found, cursor = [], None
    while True:
        page = await store.operator.list(wanted, 5, cursor)
        found.append([job.id for job in page.items])
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("wanted", RARE, ids=str)
async def test_short_pages_show_everything_once(
    opens: Open, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any]
) -> None:
    store = opens()
    await fill(store)
    whole = [id_ for page in await pages(store, JobFilter(**wanted)) for id_ in page]
    assert whole
    for walk in (1, 2, 3, 7):
        monkeypatch.setattr(read_jobs, "MAX_ROWS_PER_PAGE", walk)
        assert [id_ for page in await pages(store, JobFilter(**wanted)) for id_ in page] == whole


async def test_a_page_without_a_match_ends_and_says_where_to_go_on(
    opens: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opens()
    await fill(store)
    monkeypatch.setattr(read_jobs, "MAX_ROWS_PER_PAGE", 3)
    found = await pages(store, JobFilter(tag="nobody's"))
    assert len(found) > 3
    assert not any(found)


async def test_children_are_found_by_their_own_index(opens: Open) -> None:
    store = opens()

    def work(db: Db) -> list[str]:
        where = "WHERE id < 'g' AND id >= '' AND parent = 'p' ORDER BY id DESC"
        text = "EXPLAIN QUERY PLAN SELECT id FROM windlass_{} " + where
        return [row[3] for table in ("jobs", "history") for row in db.select(text.format(table))]

    steps = await store._threads.write(work, None)
    assert [index for index in ("windlass_jobs_parent", "windlass_history_parent") if index in str(steps)] == [
        "windlass_jobs_parent",
        "windlass_history_parent",
    ]
