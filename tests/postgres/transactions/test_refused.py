"""Connections that a job cannot be enqueued with: refused with a message that helps, and nothing is stored."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres.transactions.callers import Blocking, Caller
from tests.postgres.transactions.drivers import Asyncpg, Psycopg, PsycopgAsync
from tests.support.servers.places import postgres_place
from tests.support.stores import postgres_url as migrated_url
from windlass import App, EnqueueFailed, InvalidOption


async def total(app: App) -> int:
    return sum((await app.stats.acounts()).totals.values())


async def test_without_a_transaction_the_error_says_how_to_begin_one(
    watcher: App, work: Any, stranger: Caller, url: str
) -> None:
    await stranger.open(url, autocommit=True)
    with pytest.raises(InvalidOption, match=r"connection: is in no transaction: .*; the jobs exist once you commit"):
        await stranger.enqueue(work, 1)
    assert await total(watcher) == 0
    await stranger.close()


async def test_a_transaction_that_has_failed_takes_no_job(watcher: App, work: Any, caller: Caller) -> None:
    with pytest.raises(Exception, match="division by zero"):
        await caller.execute("SELECT 1 / 0")
    with pytest.raises(InvalidOption, match="connection: is in a transaction that has failed: roll it back first"):
        await caller.enqueue(work, 1)
    await caller.rollback()
    await caller.enqueue(work, 2)
    await caller.commit()
    assert await total(watcher) == 1


async def test_a_read_only_transaction_takes_no_job(watcher: App, work: Any, caller: Caller) -> None:
    await caller.execute("SET TRANSACTION READ ONLY")
    with pytest.raises(InvalidOption, match="connection: is in a read-only transaction"):
        await caller.enqueue(work, 1)
    await caller.execute("SELECT 1")
    await caller.rollback()
    assert await total(watcher) == 0


async def test_another_database_is_refused_also_one_that_is_a_copy(
    watcher: App, work: Any, stranger: Caller, tmp_path: Path
) -> None:
    await stranger.open(migrated_url(tmp_path / "other"))
    with pytest.raises(InvalidOption, match=r"connection: is open on database 'windlass_.*', and the jobs are in"):
        await stranger.enqueue(work, 1)
    await stranger.execute("SELECT 1")
    await stranger.close()


async def test_a_database_without_our_tables_is_another_one(work: Any, stranger: Caller, tmp_path: Path) -> None:
    await stranger.open(postgres_place(tmp_path / "empty"))
    with pytest.raises(InvalidOption, match="connection: is open on a database without the schema windlass"):
        await stranger.enqueue(work, 1)
    await stranger.execute("SELECT 1")
    await stranger.close()


async def test_a_restored_copy_under_the_same_name_is_recognized_by_its_id(work: Any, app: App, url: str) -> None:
    await total(app)
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE windlass.identity SET id = gen_random_uuid()")
        connection.commit()
        with pytest.raises(InvalidOption, match="connection: is open on database"):
            await work.using(connection=connection).aenqueue(1)


async def test_a_connection_that_is_closed_or_cut_hands_nothing_in(
    watcher: App, work: Any, caller: Caller, url: str
) -> None:
    await caller.enqueue(work, 1)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )
    with pytest.raises(EnqueueFailed, match="nothing was stored: "):
        await caller.enqueue(work, 2)
    assert await total(watcher) == 0


@pytest.mark.parametrize("kind", [Asyncpg, PsycopgAsync])
async def test_an_asynchronous_connection_is_not_for_blocking_calls(work: Any, url: str, kind: Any) -> None:
    caller = kind()
    await caller.open(url)
    thread = Blocking()
    with pytest.raises(InvalidOption, match="connection: is asynchronous: use `await aenqueue"):
        await thread.call(work.using(connection=caller.connection).enqueue, 1)
    await caller.close()


@pytest.mark.parametrize("wrong", [42, object(), "default", psycopg])
async def test_what_is_no_connection_is_refused(work: Any, wrong: Any) -> None:
    with pytest.raises(InvalidOption, match="connection: must be a connection of psycopg, psycopg2 or asyncpg"):
        await work.using(connection=wrong).aenqueue(1)


async def test_a_store_that_is_away_is_not_the_callers_trouble(url: str) -> None:
    away = App(url.replace("windlass_test_", "no_such_"))

    @away.task
    def work(number: int) -> None: ...

    caller = Psycopg()
    await caller.open(url)
    with pytest.raises(EnqueueFailed, match="does not exist; create the database first"):
        await caller.enqueue(work, 1)
    await caller.execute("SELECT 1")
    await caller.close()
    await away.aclose()


async def test_a_user_without_the_right_gets_an_error_that_names_it(watcher: App, work: Any, url: str) -> None:
    caller = Psycopg()
    await caller.open(url)
    await caller.execute("DROP ROLE IF EXISTS windlass_nobody")
    await caller.execute("CREATE ROLE windlass_nobody")
    await caller.execute("SET LOCAL ROLE windlass_nobody")
    with pytest.raises(EnqueueFailed, match="permission denied for schema windlass; grant it"):
        await caller.enqueue(work, 1)
    await caller.rollback()
    await caller.close()
