"""The schema: made on first use, never mistaken, never in the way of the user's own tables."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.sqlite.conftest import Connect, Open
from tests.support.seed import enqueue_one, look
from windlass.errors import SchemaMismatch, StoreUnavailable
from windlass.store.sqlite.migrate import migrations


def rows(connects: Connect, text: str) -> list[tuple[object, ...]]:
    connection = connects()
    try:
        return connection.rows(text)
    finally:
        connection.close()


async def test_a_fresh_file_gets_every_step_once(opens: Open, connects: Connect) -> None:
    names = [step.name for step in migrations()]
    assert await opens().migrate() == names
    assert await opens().migrate() == []
    assert [row[0] for row in rows(connects, "SELECT name FROM windlass_schema ORDER BY number")] == names


def test_steps_are_numbered_from_one_without_gaps() -> None:
    assert [step.number for step in migrations()] == list(range(1, len(migrations()) + 1))


async def test_the_first_verb_of_any_kind_makes_the_schema(opens: Open) -> None:
    assert await opens().operator.get([]) == []


async def test_opening_alone_touches_no_database(opens: Open, path: Path) -> None:
    opens()
    assert path.name not in os.listdir(path.parent)


async def test_a_second_store_on_the_same_file_sees_the_same_jobs(opens: Open) -> None:
    first, second = opens(), opens()
    id_ = await enqueue_one(first)
    assert (await look(second, id_)).id == id_


async def test_stores_that_open_a_fresh_file_at_once_do_not_collide(opens: Open) -> None:
    stores = [opens() for _ in range(6)]
    applied = await asyncio.gather(*(store.migrate() for store in stores))
    assert sorted(map(len, applied)) == [0] * 5 + [len(migrations())]


async def test_everything_of_ours_is_called_windlass_and_what_was_there_stays(opens: Open, connects: Connect) -> None:
    connection = connects()
    for text in ("CREATE TABLE users (name TEXT)", "INSERT INTO users VALUES ('ada')", "PRAGMA user_version = 42"):
        connection.run(text)
    connection.close()
    await enqueue_one(opens())
    assert rows(connects, "SELECT name FROM users") == [("ada",)]
    assert rows(connects, "PRAGMA user_version") == [(42,)]
    names = [str(row[0]) for row in rows(connects, "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")]
    assert len(names) > 10
    assert [name for name in names if not name.startswith("windlass_")] == ["users"]


async def test_a_newer_schema_is_refused_and_left_alone(opens: Open, connects: Connect) -> None:
    store = opens()
    await store.migrate()
    await store.close()
    connection = connects()
    connection.run("INSERT INTO windlass_schema (number, name) VALUES (9999, '9999_future')")
    connection.close()
    for verb in (opens().migrate(), opens().operator.counts(), enqueue_one(opens())):
        with pytest.raises(SchemaMismatch, match="9999"):
            await verb
    assert rows(connects, "SELECT count(*) FROM windlass_jobs") == [(0,)]


@pytest.fixture
def diary(path: Path) -> Path:
    """Something else, where the database should be."""
    path.write_text("dear diary, " * 1000)
    return path


async def test_a_file_that_is_no_database_is_refused(opens: Open, diary: Path) -> None:
    with pytest.raises(StoreUnavailable, match="not an SQLite database") as refused:
        await opens().migrate()
    assert refused.value.maybe_done is False
