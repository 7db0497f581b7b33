"""A migration that has to wait for another transaction: readers continue meanwhile, and it leaves nothing behind."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres.strangers import OURS, until_no_session_waits, until_waiting
from tests.support.processes import Process, Processes, until
from tests.support.releases import STEP, make_release
from tests.support.servers.address import Address
from windlass import StoreUnavailable
from windlass.store.migrations import Migration
from windlass.store.open import discard, open_store
from windlass.store.postgres import migrate
from windlass.store.postgres.migrate import migrations

OLD = migrations()[-1].number
LATER = Migration(9000, STEP, "ALTER TABLE windlass.jobs ADD COLUMN of_tomorrow text", breaking=False)
"""A made-up step that changes the table of jobs."""
NEWER = [LATER.name]
READ = "SELECT count(*) FROM windlass.jobs"
FOR_EVER = "20s"
"""A session that waits this long behind a migration would wait for as long as that does."""


@pytest.fixture
def url(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with the schema of an older version."""

    async def make() -> None:
        store = open_store(postgres_url)
        await store.migrate()
        await store.close()

    asyncio.run(make())
    steps = [*migrations(), LATER]
    monkeypatch.setattr(migrate, "migrations", lambda *_: steps)
    return postgres_url


@pytest.fixture
def server(url: str) -> Address:
    return Address(url)


@pytest.fixture
def reader(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A session that has read jobs in a transaction that is still open: a report, pg_dump, a forgotten psql."""
    with psycopg.connect(url, application_name="a long report") as connection:
        connection.execute(READ)
        yield connection


@pytest.fixture
def processes(url: str, tmp_path: Path) -> Iterator[Processes]:
    release = make_release(tmp_path / "release")
    made = Processes(tmp_path, {"WINDLASS_STORE": url, "PYTHONPATH": str(release)})
    yield made
    made.end()


def start(processes: Processes) -> Process:
    return processes.start("migrate", "-m", "windlass", "migrate")


def read_through(server: Address, times: int) -> None:
    """Others read while the migration goes on trying."""
    with psycopg.connect(server.url, autocommit=True, options=f"-c statement_timeout={FOR_EVER}") as other:
        for _ in range(times):
            until_waiting(server)
            assert other.execute(READ).fetchall() == [(0,)]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tries in a moment."""
    monkeypatch.setattr(migrate, "LOCK_SECONDS", 0.3)
    monkeypatch.setattr(migrate, "PAUSE_SECONDS", 0.2)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("migrators", [1, 3])
async def test_readers_go_on_while_migrations_wait_and_the_steps_are_taken_once_when_they_can_be(
    url: str, server: Address, reader: psycopg.Connection[Any], migrators: int
) -> None:
    stores = [open_store(url, deadline=60) for _ in range(migrators)]
    migrating = [asyncio.create_task(store.migrate()) for store in stores]
    await asyncio.to_thread(read_through, server, 4)
    assert not any(each.done() for each in migrating)
    reader.commit()
    assert sorted(await asyncio.gather(*migrating)) == [[]] * (migrators - 1) + [NEWER]
    for store in stores:
        await store.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_migration_whose_process_ends_does_not_wait_on(
    server: Address, reader: psycopg.Connection[Any], processes: Processes, number: signal.Signals
) -> None:
    migrating = start(processes)
    until_waiting(server)
    migrating.send(number)
    assert migrating.wait() != 0
    until(lambda: not server.execute(f"SELECT 1 {OURS}"), "its backend has ended")
    reader.commit()
    assert server.execute("SELECT max(number) FROM windlass.schema") == [(OLD,)]


@pytest.mark.usefixtures("hasty")
async def test_the_holder_of_the_lock_is_named_when_time_is_over(
    url: str, server: Address, reader: psycopg.Connection[Any]
) -> None:
    store = open_store(url, deadline=2)
    named = rf"process {reader.info.backend_pid} \(a long report\), in a transaction since .*: {READ[:12]}"
    with pytest.raises(StoreUnavailable, match=f"no answer within 2 s; the migration waits for {named}") as caught:
        await store.operator.counts()
    assert not caught.value.maybe_done
    await asyncio.to_thread(until_no_session_waits, server)
    reader.commit()
    assert await store.with_timeout(20).migrate() == NEWER
    await store.close()


@pytest.mark.usefixtures("hasty")
async def test_a_command_that_migrates_gives_up_some_day(
    url: str, reader: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "PATIENCE_SECONDS", 0.5)
    store = open_store(url)
    with pytest.raises(StoreUnavailable, match=r"waits for process .*a long report"):
        await store.migrate()
    await store.close()


@pytest.mark.usefixtures("hasty")
async def test_removing_a_schema_does_not_stop_readers_either(
    url: str, server: Address, reader: psycopg.Connection[Any]
) -> None:
    removing = asyncio.create_task(discard(url))
    await asyncio.to_thread(read_through, server, 2)
    reader.commit()
    await removing
    assert server.execute("SELECT to_regclass('windlass.jobs')") == [(None,)]
