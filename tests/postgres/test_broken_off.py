"""A call that is broken off, by its caller or with its process, is cancelled on the server too."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.postgres.strangers import OURS, unread_results, until_no_session_waits, until_waiting
from tests.support.processes import Processes, until
from tests.support.seed import enqueue_one, look, new_job
from tests.support.servers.address import Address
from windlass import App
from windlass.store.contract import Store
from windlass.store.open import open_store


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    opened = open_store(url, deadline=20)
    await opened.migrate()
    yield opened
    await opened.close()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("times", [1, 3])
async def test_a_call_cancelled_by_its_caller_is_cancelled_on_the_server(
    store: Store, url: str, server: Address, times: int
) -> None:
    """However often: anyio cancels at every await until the scope has been left."""
    with unread_results(url):
        for many in (1, 2, 1, 2):
            jobs = [new_job(queue=f"q{n}") for n in range(many)]
            caller = asyncio.create_task(store.jobs.enqueue(jobs))
            await asyncio.to_thread(until_waiting, server)
            for _ in range(times):
                caller.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await caller
            await asyncio.to_thread(until_no_session_waits, server)
    assert (await store.operator.counts()).totals["pending"] == 0
    await enqueue_one(store)


@pytest.mark.usefixtures("unchecked")
async def test_a_loop_that_ends_in_the_middle_of_a_call_cancels_it_on_the_server(url: str, server: Address) -> None:
    store = open_store(url, deadline=60)
    await store.migrate()

    async def interrupted() -> None:
        """As by Ctrl-C: whatever is under way is cancelled when this returns."""
        calls = [asyncio.create_task(enqueue_one(store, queue=f"q{n}")) for n in range(2)]
        await asyncio.to_thread(until_waiting, server)
        del calls

    async def interrupted_at_once() -> None:
        """The call is cancelled, and the loop ends before anything else can happen on it."""
        call = asyncio.create_task(enqueue_one(store))
        await asyncio.to_thread(until_waiting, server)
        call.cancel()
        await asyncio.wait([call])

    with unread_results(url):
        for main in (interrupted, interrupted_at_once):
            await asyncio.to_thread(asyncio.run, main())
            await asyncio.to_thread(until_no_session_waits, server)
    await store.close()


def test_a_killed_process_leaves_no_backend_though_the_lock_is_held_on(
    url: str, server: Address, tmp_path: Path
) -> None:
    processes = Processes(tmp_path, {"WINDLASS_STORE": url})
    try:
        with unread_results(url):
            process = processes.start("producer", "-m", "windlass", "enqueue", "work")
            until_waiting(server)
            process.kill()
            until(lambda: not server.execute(f"SELECT 1 {OURS}"), "its backends have ended")
    finally:
        processes.end()


@pytest.mark.usefixtures("unchecked")
async def test_a_wait_for_a_result_that_is_given_up_leaves_no_backend(url: str, server: Address) -> None:
    app = App(url)

    @app.task
    async def work() -> None: ...

    handle = await work.aenqueue()
    with psycopg.connect(url, application_name="a stranger") as other:
        other.execute("LOCK TABLE windlass.result_waits IN ACCESS EXCLUSIVE MODE")
        waiting = asyncio.create_task(handle.aresult())
        await asyncio.to_thread(until_waiting, server)
        waiting.cancel()
        async with asyncio.timeout(20):
            await app.aclose()
        await asyncio.to_thread(until_no_session_waits, server)


async def test_a_callers_own_connection_is_neither_cancelled_nor_closed(url: str, server: Address) -> None:
    app = App(url)

    @app.task
    async def work() -> None: ...

    await work.aenqueue()
    theirs: asyncpg.Connection[Any] = await asyncpg.connect(
        url, server_settings={"application_name": "windlass user"}
    )
    transaction = theirs.transaction()
    await transaction.start()
    await theirs.execute("CREATE TABLE orders (id integer)")
    with unread_results(url):
        call = asyncio.create_task(work.using(connection=theirs).aenqueue())
        await asyncio.to_thread(until_waiting, server)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert not theirs.is_closed()
    await theirs.execute("INSERT INTO orders VALUES (1)")
    await work.using(connection=theirs).aenqueue()
    await transaction.commit()
    assert await theirs.fetchval("SELECT count(*) FROM orders") == 1
    await theirs.close()
    assert (await app.stats.acounts()).totals["pending"] == 2
    await app.aclose()


async def test_every_session_has_the_server_look_for_its_client(store: Store, server: Address) -> None:
    await look(store, await enqueue_one(store))
    opened = store._server.pool()._free[0]  # type: ignore[attr-defined]
    assert await opened.connection.fetchval("SHOW client_connection_check_interval") == "2s"
