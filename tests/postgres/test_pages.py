"""Pages: looking for rare jobs among many ends after a bounded walk, and goes on with the next page."""

from itertools import chain
from typing import Any

import pytest

from tests.support.seed import put
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import JobFilter
from windlass.store.sql import read_jobs

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
    {"status": (Status.DEAD, Status.CANCELLED)},
    {},
]


async def fill(store: Store) -> None:
    """Twenty-four jobs; every eighth is in some way special."""
    statuses = [Status.COMPLETED, Status.DEAD, Status.PENDING, Status.SCHEDULED]
    for n in range(24):
        if n % 8 < 2:
            await put(store, statuses[n // 8], tags=("x",), type="rare", queue="rare", tenant="rare")
        else:
            await put(store, statuses[n % 4])


async def pages(store: Store, wanted: JobFilter) -> list[list[JobId]]:
    """Every page."""
    found, cursor = [], None
    while True:
        page = await store.operator.list(wanted, 5, cursor)
        found.append([job.id for job in page.items])
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_short_pages_show_everything_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(store)
    whole = [[*chain(*await pages(store, JobFilter(**wanted)))] for wanted in RARE]
    assert all(whole)
    for walk in (1, 2, 3, 7):
        monkeypatch.setattr(read_jobs, "MAX_ROWS_PER_PAGE", walk)
        assert [[*chain(*await pages(store, JobFilter(**wanted)))] for wanted in RARE] == whole


async def test_a_page_without_a_match_ends_and_says_where_to_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store)
    monkeypatch.setattr(read_jobs, "MAX_ROWS_PER_PAGE", 3)
    found = await pages(store, JobFilter(tag="nobody's"))
    assert len(found) > 3
    assert not any(found)


async def test_tags_that_were_edited_into_nonsense_are_harmless(store: Store, connection: Any) -> None:
    match = await put(store, Status.PENDING, tags=("x",))
    for nonsense in ("", "{", '{"a": "b"}', "null", "[1, 2]", '["\\ud800"]', "\U0001f986"):
        edited = await put(store, Status.PENDING, tags=("x",))
        await connection.execute("UPDATE windlass.jobs SET tags = $1 WHERE id = $2::uuid", nonsense, edited)
    assert await pages(store, JobFilter(tag="x")) == [[match]]
    assert await store.operator.select(JobFilter(tag="x"), 10, None) == [match]
