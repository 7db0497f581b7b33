"""Waiting for results on PostgreSQL: what is written down for it, and what is when the line to the server is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.support.clock import ManualClock
from tests.support.proxy import Proxy
from tests.support.reported import Reported, looked, watched
from tests.support.seed import claim_one, completed, enqueue, enqueue_one, open_lease, request, running, settle
from tests.support.servers.places import behind_pooler
from tests.support.servers.postgres import Mode, PostgresServer
from tests.support.stores import postgres_url
from windlass import App, Handle
from windlass.client.runtime import result_waiter as result_waiter
from windlass.core.jobs.job import Claimed
from windlass.core.moments import DAY
from windlass.store.contract import Store
from windlass.store.contract_upkeep import CompletionWatcher
from windlass.store.open import open_store
from windlass.store.postgres.connection import session
from windlass.store.postgres.connection.session import Session, close_cancelled
from windlass.store.postgres.store import PostgresStore
from windlass.store.postgres.verbs.completion_watcher import PostgresCompletionWatcher

CUT_OFF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE query LIKE '%INTO%result_waits%' AND pid <> pg_backend_pid()
"""
"""Who listens has written down for what, and said nothing since."""
FOR_EVER = 10_000.0


@pytest.fixture
def without_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_waiter, "pause_after", lambda seconds, signalled: FOR_EVER)


async def until(found: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await found():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def awaited(connection: Any) -> int:
    return int(await connection.fetchval("SELECT count(*) FROM windlass.result_waits"))


async def test_what_is_watched_stays_until_it_ends_or_is_not_awaited(store: Store, connection: Any) -> None:
    await open_lease(store)
    ids = await enqueue(store, 3)
    watcher, reported = await watched(store, *ids)
    assert await awaited(connection) == 3
    job = await claim_one(store)
    await settle(store, completed(job))
    assert await reported.of(job.id)
    assert await awaited(connection) == 2
    watcher.unwatch(next(id_ for id_ in ids if id_ != job.id))
    await until(lambda: _is(awaited(connection), 1))
    await watcher.close()
    assert await awaited(connection) == 0


async def _is(found: Awaitable[int], wanted: int) -> bool:
    return await found == wanted


async def test_what_the_dead_have_left_is_cleared_away_after_a_day(
    store: Store, connection: Any, clock: ManualClock
) -> None:
    job = await running(store)
    watcher, _ = await watched(store, job.id)
    clock.advance(DAY - 1)
    await store.operator.prune(100)
    assert await awaited(connection) == 1
    clock.advance(1)
    await store.operator.prune(100)
    assert await awaited(connection) == 0
    await watcher.close()


async def test_a_listener_that_is_cut_off_listens_again_and_misses_nothing(store: Store, connection: Any) -> None:
    job = await running(store)
    watcher, reported = await watched(store, job.id)
    assert await connection.fetch(CUT_OFF)
    await settle(store, completed(job))
    assert await reported.of(job.id)
    assert watcher.outage is None
    await watcher.close()


async def test_jobs_that_are_not_awaited_are_not_reported(store: Store, connection: Any) -> None:
    await open_lease(store)
    await enqueue(store, 5)
    said: list[str] = []
    other = (await enqueue(store, 1))[0]
    watcher, reported = await watched(store, other)
    assert isinstance(watcher, PostgresCompletionWatcher)
    await connection.add_listener(watcher._channel, lambda *words: said.append(words[-1]))
    await store.jobs.settle([completed(job) for job in await store.jobs.claim(request())])
    assert await reported.of(other)
    await until(lambda: _is(_length(said), 1))
    assert said == [other]
    await connection.reset()
    await watcher.close()


async def _length(said: list[str]) -> int:
    return len(said)


async def test_without_notifications_it_says_so_and_waiters_poll(tmp_path: Path) -> None:
    url = postgres_url(tmp_path)
    for address, why in ((f"{url}?notify=off", "notify=off"), (behind_pooler(url), "there is a pooler")):
        store = open_store(address)
        job = await running(store, queue=f"q{why[0]}")
        watcher = store.signals.watch_completions(Reported())
        watcher.watch(job.id, job.queue)
        await until(lambda: _says(watcher, why))  # noqa: B023
        await watcher.close()
        app = App(address)
        waiting: asyncio.Task[Any] = asyncio.create_task(Handle(app, job.id).aresult(timeout=30))
        await looked(app)
        await settle(store, completed(job, "7"))
        assert await waiting == 7
        await app.aclose()
        await store.close()


async def _says(watcher: Any, why: str) -> bool:
    return why in (watcher.outage or "")


@asynccontextmanager
async def waiting_for(url: str, settler: Store) -> AsyncIterator[tuple["asyncio.Task[Any]", Claimed]]:
    """A waiter at this address for a job that runs, told of it if it ends."""
    app = App(url)
    job = await running(settler)
    waiting: asyncio.Task[Any] = asyncio.create_task(Handle(app, job.id).aresult(timeout=60))
    await until(lambda: _listens(app))
    yield waiting, job
    await app.aclose()


async def _listens(app: App) -> bool:
    return app._store_handle.result_waiter(await app._ready())._watcher.outage is None


@pytest.mark.usefixtures("without_polling")
@pytest.mark.parametrize("mode", [Mode.FAST, Mode.IMMEDIATE])
async def test_a_waiter_gets_the_result_after_the_server_was_started_again(
    postgres_server: PostgresServer, mode: Mode
) -> None:
    settler = open_store(postgres_server.dsn())
    async with waiting_for(postgres_server.dsn(), settler) as (waiting, job):
        await asyncio.to_thread(postgres_server.restart, mode)
        await settle(settler, completed(job, "7"))
        assert await waiting == 7
    await settler.close()


async def test_a_waiter_behind_a_silent_connection_has_the_result_when_it_answers_again(tmp_path: Path) -> None:
    url = postgres_url(tmp_path)
    settler = open_store(url)
    host, _, port = url.rpartition("/")[0].rpartition("@")[2].partition(":")
    with Proxy(host, int(port)) as proxy:
        async with waiting_for(url.replace(f":{port}/", f":{proxy.port}/"), settler) as (waiting, job):
            proxy.fall_silent()
            await settle(settler, completed(job, "7"))
            proxy.speak()
            assert await waiting == 7
    await settler.close()


async def test_a_wait_that_is_over_while_the_store_is_away_says_that_it_is(postgres_server: PostgresServer) -> None:
    settler = open_store(postgres_server.dsn())
    app = App(postgres_server.dsn(), deadline=1)
    id_ = await enqueue_one(settler)
    waiting: asyncio.Task[Any] = asyncio.create_task(Handle(app, id_).aresult(timeout=1))
    await until(lambda: _listens(app))
    await asyncio.to_thread(postgres_server.stop)
    with pytest.raises(TimeoutError, match=f"^job {id_} was pending when last read; its status now is unknown: "):
        await waiting
    await app.aclose()
    await settler.close()


async def test_a_wait_that_is_over_leaves_nothing_though_its_deletion_was_cancelled(
    store: Store, connection: Any, url: str
) -> None:
    """Nothing else deletes it if its job has ended already."""
    job = await running(store)
    watcher, _ = await watched(store, job.id)
    other = await asyncpg.connect(url)
    async with other.transaction():
        await other.fetch("SELECT FROM windlass.result_waits FOR UPDATE")
        watcher.unwatch(job.id)
        await until(lambda: _deletion(connection))
        begun = await _deletion(connection)
        closing = asyncio.create_task(watcher.close())
        await until(lambda: _is_not(_deletion(connection), begun))
    await closing
    assert await awaited(connection) == 0
    await other.close()


async def _deletion(connection: Any) -> Any:
    """When the statement began that waits for a lock."""
    waiting = "wait_event_type = 'Lock' AND query LIKE '%DELETE%result_waits%' AND pid <> pg_backend_pid()"
    return await connection.fetchval(f"SELECT query_start FROM pg_stat_activity WHERE {waiting}")


async def _is_not(found: Awaitable[Any], other: Any) -> bool:
    return bool(await found != other)


def test_a_loop_that_ends_while_the_listener_hangs_up_closes_its_connection(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the loop cancels the completion watcher, and so does a close then."""
    sessions: list[Session] = []

    async def slowly(connection: Any) -> None:
        if connection is sessions[0].connection:
            await asyncio.sleep(0.5)  # longer than the loop's last round
        await close_cancelled(connection)

    async def end_with_the_loop(watcher: CompletionWatcher) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)  # the watcher, cancelled too, has begun to hang up
            await watcher.close()

    async def listen() -> None:
        store = open_store(postgres_url(tmp_path), clock=clock)
        assert isinstance(store, PostgresStore)
        open_apart = store._server.open_apart
        monkeypatch.setattr(store._server, "open_apart", lambda: _noted(open_apart(), sessions))
        watcher, _ = await watched(store, await enqueue_one(store))
        monkeypatch.setattr(session, "close_cancelled", slowly)
        ending = asyncio.create_task(end_with_the_loop(watcher))
        await asyncio.sleep(0)
        assert not ending.done()

    asyncio.run(listen())
    (listener,) = sessions
    assert listener.connection._transport.is_closing()


async def _noted(opening: Awaitable[Session], sessions: list[Session]) -> Session:
    sessions.append(await opening)
    return sessions[-1]
