"""Steps of the schema: who may take them, one at a time, and what code does that finds steps it does not know."""

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from tests.cli.terminal import process
from tests.support.every_verb import every_verb
from tests.support.seed import claim_one, enqueue_one, open_lease
from windlass import App, ConfigError, SchemaMismatch, StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.postgres.migrate import migrations

LATEST = migrations()[-1]


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def step(number: int, *, breaking: bool) -> str:
    return f"INSERT INTO windlass.schema (number, name, breaking) VALUES ({number}, '{number:04}_future', {breaking})"


@pytest.fixture
def stranger(postgres_url: str) -> Iterator[str]:
    """The address of a user of this database who may do nothing in it but connect."""
    name = f"windlass_test_{secrets.token_hex(4)}"
    parts = urlsplit(postgres_url)
    execute(postgres_url, f"CREATE ROLE {name} LOGIN PASSWORD 'open'")
    port = f":{parts.port}" if parts.port else ""
    yield urlunsplit(parts._replace(netloc=f"{name}:open@{parts.hostname}{port}"))
    execute(postgres_url, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


async def test_each_step_says_whether_it_breaks_the_code_before_it() -> None:
    numbers = [each.number for each in migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [(each.name, each.breaking) for each in migrations()] == [("0001_initial", False)]


async def test_a_step_that_breaks_is_refused_in_a_sentence(store: Store) -> None:
    await store.operator.counts()
    execute(store.address, step(LATEST.number + 1, breaking=True))
    second = open_store(store.address)
    sentence = f"the schema windlass has step {LATEST.number + 1:04}_future, which this version of Windlass cannot"
    with pytest.raises(SchemaMismatch, match=f"{sentence} work with: upgrade Windlass"):
        await second.operator.counts()
    with pytest.raises(SchemaMismatch, match=sentence):
        await second.migrate()
    await second.close()


async def test_a_process_from_before_a_renamed_column_can_claim_nothing(store: Store) -> None:
    """A step that breaks renames a column that the older statements need: a process that is still alive fails."""
    await open_lease(store)
    await enqueue_one(store)
    execute(store.address, "ALTER TABLE windlass.jobs RENAME COLUMN aged_by TO raised_by")
    with pytest.raises(SchemaMismatch, match=r"aged_by.*; run `windlass migrate`"):
        await claim_one(store)


async def test_many_first_calls_at_once_make_it_once(postgres_url: str) -> None:
    stores = [open_store(postgres_url) for _ in range(6)]
    applied = await asyncio.gather(*(store.migrate() for store in stores))
    assert sorted(map(len, applied)) == [0, 0, 0, 0, 0, len(migrations())]
    for store in stores:
        await store.close()


def test_processes_that_come_first_at_once_all_end_well(postgres_url: str, tmp_path: Path) -> None:
    async def together() -> list[str]:
        calls = [asyncio.to_thread(process, tmp_path, "migrate", WINDLASS_STORE=postgres_url) for _ in range(3)]
        return sorted(ran.stdout + ran.stderr for ran in await asyncio.gather(*calls))

    done = "".join(f"applied {each.name}\n" for each in migrations())
    assert asyncio.run(together()) == ["The schema is up to date.\n"] * 2 + [done]


async def test_a_user_who_may_create_nothing_is_told_what_to_do(stranger: str, postgres_url: str) -> None:
    store = open_store(stranger)
    with pytest.raises(
        StoreUnavailable, match=r"permission denied for database .*; grant it, or let `windlass migrate`"
    ):
        await store.migrate()
    owner = open_store(postgres_url)
    await owner.migrate()
    with pytest.raises(StoreUnavailable, match="permission denied for schema windlass; grant it"):
        await store.operator.counts()
    # What the doctor advises is enough.
    user = urlsplit(stranger).username
    execute(
        postgres_url,
        f"GRANT USAGE ON SCHEMA windlass TO {user}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA windlass TO {user}",
    )
    await every_verb(store)
    await store.close()
    await owner.close()


@pytest.mark.parametrize("second", ["other", "user", "select", "_x9", "l" * 50])
async def test_two_schemas_of_one_database_do_not_see_each_other(postgres_url: str, second: str) -> None:
    one, two = open_store(postgres_url), open_store(f"{postgres_url}?schema={second}")
    assert await one.migrate() == await two.migrate() == [each.name for each in migrations()]
    id_ = await enqueue_one(one)
    assert await two.operator.get([id_]) == [None]
    await every_verb(two)
    await open_lease(one)
    assert (await claim_one(one)).id == id_
    await one.close()
    await two.close()


@pytest.mark.parametrize(
    "name", ["Jobs", "9lives", "pg_mine", "a-b", "a b", 'a"; DROP TABLE x', "ä", "", "information_schema", "l" * 51]
)
def test_a_name_that_needs_care_is_refused(name: str) -> None:
    app = App(f"postgresql://localhost/db?schema={name}")
    with pytest.raises(ConfigError, match="schema is up to 50 small letters, digits and underscores"):
        app.stats.counts()
    app.close()
