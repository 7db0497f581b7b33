"""A lone job is stored by a statement of its own, exactly as one of a batch is."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import START, ManualClock
from tests.support.runners import rule
from tests.support.seed import enqueue, enqueue_one
from tests.support.stores import sqlite_file
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.sqlite.store import SqliteStore

OPTIONS: list[dict[str, Any]] = [
    {},
    {"priority": 7, "tags": ("a", "b"), "meta": '{"k":1}', "parent": "p", "flow": "f"},
    {"max_attempts": 9, "timeout": 5 * SECOND, "expires": 60 * SECOND},
    {"timeout": 0, "expires_at": START + 90 * SECOND, "tenant": "a"},
    {"delay": 30 * SECOND},
    {"run_at": START - 30 * SECOND},
    {"run_at": START + 30 * SECOND},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: "-".join(each) or "none")
@pytest.mark.parametrize("fair", [False, True], ids=["in order", "fair"])
async def test_a_lone_job_is_stored_as_one_of_a_batch(tmp_path: Path, options: dict[str, Any], fair: bool) -> None:
    clock = ManualClock()
    store = sqlite_file(tmp_path, clock)
    await enqueue(store, 2)  # makes the queue
    await rule(store, fair=fair)
    clock.advance(SECOND)
    first, second = await enqueue(store, 2, **options)
    lone = await enqueue_one(store, **options)
    assert await row_of(store, lone) == await row_of(store, first) == await row_of(store, second)
    await store.close()


async def test_a_lone_job_is_stored_without_the_statements_of_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sqlite_file(tmp_path, ManualClock())
    await enqueue_one(store)  # makes the queue
    monkeypatch.delattr("windlass.store.sqlite.verbs.enqueue.Enqueue")
    lone = await enqueue_one(store)
    assert "default" in await row_of(store, lone)
    await store.close()


async def row_of(store: Store, id_: str) -> list[Any]:
    """All columns but the id."""
    assert isinstance(store, SqliteStore)
    rows = await store._threads.read(
        lambda db: db.select("SELECT * FROM windlass_jobs WHERE id = :id", {"id": id_}), None
    )
    (row,) = rows
    return [value for value in row if value != id_]
