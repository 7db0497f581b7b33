"""Trouble on the way to the server, as a producer meets it: unnoticed where nothing was sent, else told honestly."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec import structs

from tests.support.processes import until
from tests.support.proxy import Proxy
from tests.support.seed import enqueue, enqueue_one, look, new_job
from tests.support.servers.address import Address
from tests.support.servers.postgres import Mode, PostgresServer
from tests.support.stores import postgres_url
from windlass import App, EnqueueFailed, EnqueueUnknown, StoreUnavailable
from windlass.core.ids import new_id
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.postgres.connection.trouble import translate

OURS = "FROM pg_stat_activity WHERE starts_with(application_name, 'windlass') AND datname = current_database()"
EVERY_CLIENT = "FROM pg_stat_activity WHERE backend_type = 'client backend'"
HASTE = 0.5


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres_url(tmp_path)


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    opened = open_store(url, deadline=20)
    await opened.migrate()
    yield opened
    await opened.close()


@pytest.fixture
def server(url: str) -> Address:
    """The test's own way to the same database."""
    return Address(url)


@contextmanager
def locked_jobs(url: str) -> Iterator[None]:
    """Another session holds the table of jobs."""
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE windlass.jobs IN EXCLUSIVE MODE")
        yield


async def until_waiting(server: Address) -> None:
    """Until a session waits for a lock."""
    await asyncio.to_thread(
        until, lambda: server.execute(f"SELECT 1 {OURS} AND wait_event_type = 'Lock'"), "a session waits"
    )


def kill_all(server: Address) -> int:
    """How many there were; they are gone."""
    killed = server.execute(f"SELECT pg_terminate_backend(pid) {OURS}")
    until(lambda: not server.execute(f"SELECT 1 {OURS}"), "all are gone")
    return len(killed)


async def test_connections_that_were_killed_while_idle_are_replaced_unnoticed(store: Store, server: Address) -> None:
    for _ in range(3):
        await asyncio.gather(enqueue(store), store.queues.list())
        assert kill_all(server) == 2
        await asyncio.gather(enqueue(store), store.queues.list())
    assert (await store.operator.counts()).totals["pending"] == 6


@pytest.mark.parametrize("mode", [Mode.IMMEDIATE, Mode.FAST])
def test_a_server_that_was_restarted_meanwhile_is_not_noticed(postgres_server: PostgresServer, mode: Mode) -> None:
    app = App(postgres_server.dsn())

    @app.task
    def work(number: int) -> None: ...

    work.enqueue(0)
    for number in (1, 2):
        postgres_server.restart(mode)
        work.enqueue(number)
    assert app.stats.counts().totals["pending"] == 3
    app.close()


def test_a_server_that_is_away_is_said_for_certain(postgres_server: PostgresServer) -> None:
    app = App(postgres_server.dsn())

    @app.task
    def work(number: int) -> None: ...

    work.enqueue(0)
    postgres_server.stop(Mode.IMMEDIATE)
    with pytest.raises(EnqueueFailed, match=r"^nothing was stored: postgresql://"):
        work.enqueue(1)
    postgres_server.start()
    work.enqueue(2)
    assert app.stats.counts().totals["pending"] == 2
    app.close()


async def test_an_enqueue_whose_connection_is_killed_is_unknown_and_the_same_id_settles_it(
    url: str, server: Address
) -> None:
    app = App(url)

    @app.task
    async def work(number: int) -> None: ...

    await work.aenqueue(0)
    with locked_jobs(url):
        caller = asyncio.create_task(work.aenqueue(1))
        await until_waiting(server)
        kill_all(server)
        with pytest.raises(EnqueueUnknown, match=r"\(postgresql:.*\): enqueue the same id again") as caught:
            await caller
    for existing in (False, True):
        again = await work.using(id=caught.value.id).aenqueue(1)
        assert (again.id, again.existing) == (caught.value.id, existing)
    assert (await app.stats.acounts()).totals["pending"] == 2
    await app.aclose()


async def test_a_statement_timeout_is_certain_and_says_whose_it_is(url: str, server: Address) -> None:
    database = url.rpartition("/")[2]
    server.execute(f"ALTER DATABASE {database} SET statement_timeout = '100ms'")
    store = open_store(url)
    try:
        with locked_jobs(url):
            with pytest.raises(StoreUnavailable, match="a statement_timeout of the server or of this role") as caught:
                await enqueue_one(store)
            assert not caught.value.maybe_done
        await enqueue_one(store)
        assert (await store.operator.counts()).totals["pending"] == 1
    finally:
        await store.close()


async def test_a_database_that_is_serializable_by_default_changes_nothing(url: str, server: Address) -> None:
    database = url.rpartition("/")[2]
    server.execute(f"ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'")
    stores = [open_store(url) for _ in range(4)]
    jobs = [new_job(id=new_id()) for _ in range(20)]
    try:
        await asyncio.gather(*(store.jobs.enqueue([job]) for store in stores for job in jobs))
        assert (await stores[0].operator.counts()).totals["pending"] == len(jobs)
    finally:
        for store in stores:
            await store.close()


async def test_a_deadlock_with_another_session_is_tried_again(store: Store, url: str, server: Address) -> None:
    first, second = sorted(await enqueue(store, 2))
    async with await psycopg.AsyncConnection.connect(url) as other:
        await other.execute("SET deadlock_timeout = '1min'")  # so that it is ours that gives way
        await other.execute("UPDATE windlass.jobs SET meta = meta WHERE id = %s", [second])
        cancelling = asyncio.create_task(store.operator.cancel([first, second], "unwanted"))
        await until_waiting(server)
        await other.execute("UPDATE windlass.jobs SET meta = meta WHERE id = %s", [first])
        await other.commit()
        moved = await cancelling
    assert [each is not None and each.done for each in moved] == [True, True]


async def test_a_session_that_was_idle_in_its_transaction_for_too_long_is_replaced(store: Store, url: str) -> None:
    access: Any = store.jobs._access  # type: ignore[attr-defined]

    async def dawdle(db: Any) -> None:
        await db.select("SELECT set_config('idle_in_transaction_session_timeout', '50ms', false)")
        await asyncio.sleep(0.3)
        await db.select("SELECT 1")

    with pytest.raises(StoreUnavailable) as caught:
        await access.write(dawdle)
    assert not caught.value.maybe_done
    await enqueue_one(store)


async def test_a_connection_to_a_server_that_only_reads_now_is_given_up(store: Store) -> None:
    access: Any = store.jobs._access  # type: ignore[attr-defined]
    await access.read(lambda db: db.select("SELECT set_config('default_transaction_read_only', 'on', false)"))
    with pytest.raises(StoreUnavailable, match="name the primary, or all hosts with target_session_attrs") as caught:
        await enqueue_one(store)
    assert not caught.value.maybe_done
    await enqueue_one(store)


async def test_a_server_without_a_free_connection_is_said_and_used_again(postgres_server: PostgresServer) -> None:
    postgres_server.address.execute("ALTER SYSTEM SET max_connections = 10")
    postgres_server.restart()
    store = open_store(postgres_server.dsn())
    await enqueue_one(store)
    others: list[psycopg.Connection[Any]] = []
    try:
        kill_all(postgres_server.address)
        with suppress(psycopg.OperationalError):
            while True:
                others.append(postgres_server.address.connect())
        with pytest.raises(StoreUnavailable, match="raise max_connections, use PgBouncer, or run fewer") as caught:
            await enqueue_one(store)
        assert not caught.value.maybe_done
        assert not caught.value.lasting
    finally:
        for other in others:
            other.close()
    # The server takes a moment to see that they have gone.
    until(
        lambda: postgres_server.address.execute(f"SELECT count(*) < 2 {EVERY_CLIENT}") == [(True,)], "they have gone"
    )
    assert (await look(store, await enqueue_one(store))).status == "pending"
    await store.close()


async def test_calls_on_a_silent_connection_end_by_their_deadline_and_it_is_replaced(url: str) -> None:
    real = Address(url)
    with psycopg.connect(url) as way:
        host, port = way.info.host, way.info.port
    with Proxy(host, port) as proxy:
        through = url.replace(f":{port}/", f":{proxy.port}/")
        assert through != url
        store = open_store(through, deadline=HASTE)
        try:
            await enqueue_one(store)
            proxy.fall_silent()
            began = asyncio.get_running_loop().time()
            # Alike and not alike, so that some wait for others.
            jobs = [new_job(fresh=True, type=f"t{n % 3}") for n in range(12)]
            answers = await asyncio.gather(*(store.jobs.enqueue([job]) for job in jobs), return_exceptions=True)
            assert {type(answer) for answer in answers} == {StoreUnavailable}
            assert asyncio.get_running_loop().time() - began < 20 * HASTE, "they waited for each other"
            unsure = [job for job, answer in zip(jobs, answers, strict=True) if answer.maybe_done]  # type: ignore[union-attr]
            assert 1 <= len(unsure) < len(jobs), "only what was sent is in doubt"
            proxy.speak()
            for job in jobs:
                await store.jobs.enqueue([structs.replace(job, fresh=False)])
            assert (await store.operator.counts()).totals["pending"] == 1 + len(jobs)
        finally:
            await store.close()
    assert real.execute("SELECT count(*) FROM windlass.jobs") == [(13,)]


async def test_a_silent_host_does_not_keep_us_from_the_others(url: str) -> None:
    with psycopg.connect(url) as way:
        host, port = way.info.host, way.info.port
    with Proxy(host, port) as proxy:
        proxy.fall_silent()
        store = open_store(url.replace(f":{port}/", f":{proxy.port},{host}:{port}/"), deadline=20)
        try:
            first = await enqueue_one(store)
            kill_all(Address(url))
            # From now on the good one is asked first.
            assert await store.with_timeout(HASTE).operator.get([first])
        finally:
            await store.close()


async def test_a_caller_that_is_cancelled_in_the_middle_leaves_nothing_behind(
    store: Store, url: str, server: Address
) -> None:
    tasks = asyncio.all_tasks()
    with locked_jobs(url):
        callers = [asyncio.create_task(enqueue_one(store, priority=n)) for n in range(4)]
        await until_waiting(server)
        for caller in callers:
            caller.cancel()
        ended = await asyncio.gather(*callers, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
    await enqueue(store, 3)
    await asyncio.to_thread(
        until, lambda: not server.execute(f"SELECT 1 {OURS} AND state <> 'idle'"), "the server is at rest"
    )
    assert asyncio.all_tasks() == tasks
    assert (await store.operator.counts()).totals["pending"] == 3


@pytest.mark.parametrize("wrong", ["postgresql://nobody@{place}/postgres", "{right}?sslmode=require", "{nowhere}"])
async def test_a_refused_login_is_reported_as_lasting(postgres_server: PostgresServer, wrong: str) -> None:
    place = f"127.0.0.1:{postgres_server.port}"
    url = wrong.format(place=place, right=postgres_server.dsn(), nowhere=postgres_server.dsn("nowhere"))
    store = open_store(url, deadline=5)
    with pytest.raises(StoreUnavailable) as caught:
        await store.queues.list()
    assert caught.value.lasting
    await store.close()


def test_a_certificate_that_is_refused_is_refused_for_good() -> None:
    reported = translate(ssl.SSLCertVerificationError("certificate verify failed"), "postgresql://p/db")
    assert isinstance(reported, StoreUnavailable)
    assert reported.lasting
    assert "sslrootcert" in str(reported)
