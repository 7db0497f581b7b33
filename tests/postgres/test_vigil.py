"""Waiting for results on PostgreSQL: what is written down for it, and what is when the line to the server is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.proxy import Proxy
from tests.support.seed import claim_one, completed, enqueue, enqueue_one, open_lease, request, running, settle
from tests.support.servers.places import behind_pooler
from tests.support.servers.postgres import Mode, PostgresServer
from tests.support.stores import postgres_url
from tests.support.told import Told, looked, watched
from windlass import App, Handle
from windlass.client import lookout
from windlass.core.job import Claimed
from windlass.core.moments import DAY
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.postgres.vigil import PostgresVigil

CUT_OFF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE query LIKE '%INTO%awaited%' AND pid <> pg_backend_pid()
"""
"""Who listens has written down for what, and said nothing since."""
FOR_EVER = 10_000.0


@pytest.fixture
def nobody_looks_by_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "pause_after", lambda seconds, told: FOR_EVER)


async def until(found: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await found():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def awaited(connection: Any) -> int:
    return int(await connection.fetchval("SELECT count(*) FROM windlass.awaited"))


async def test_what_is_watched_stands_until_it_ends_or_nobody_waits(store: Store, connection: Any) -> None:
    await open_lease(store)
    ids = await enqueue(store, 3)
    vigil, told = await watched(store, *ids)
    assert await awaited(connection) == 3
    job = await claim_one(store)
    await settle(store, completed(job))
    await told.of(job.id)
    assert await awaited(connection) == 2
    vigil.unwatch(next(id_ for id_ in ids if id_ != job.id))
    await until(lambda: _is(awaited(connection), 1))
    await vigil.close()
    assert await awaited(connection) == 0


async def _is(found: Awaitable[int], wanted: int) -> bool:
    return await found == wanted


async def test_what_the_dead_have_left_is_cleared_away_after_a_day(
    store: Store, connection: Any, clock: ManualClock
) -> None:
    job = await running(store)
    vigil, _ = await watched(store, job.id)
    clock.advance(DAY - 1)
    await store.operator.prune(100)
    assert await awaited(connection) == 1
    clock.advance(1)
    await store.operator.prune(100)
    assert await awaited(connection) == 0
    await vigil.close()


async def test_a_listener_that_is_cut_off_listens_again_and_misses_nothing(store: Store, connection: Any) -> None:
    job = await running(store)
    vigil, told = await watched(store, job.id)
    assert await connection.fetch(CUT_OFF)
    await settle(store, completed(job))
    await told.of(job.id)
    assert vigil.silence is None
    await vigil.close()


async def test_jobs_that_nobody_waits_for_are_not_told_of(store: Store, connection: Any) -> None:
    await open_lease(store)
    await enqueue(store, 5)
    said: list[str] = []
    other = (await enqueue(store, 1))[0]
    vigil, told = await watched(store, other)
    assert isinstance(vigil, PostgresVigil)
    await connection.add_listener(vigil._channel, lambda *words: said.append(words[-1]))
    await store.jobs.settle([completed(job) for job in await store.jobs.claim(request())])
    await told.of(other)
    await until(lambda: _is(_length(said), 1))
    assert said == [other]
    await connection.reset()
    await vigil.close()


async def _length(said: list[str]) -> int:
    return len(said)


async def test_without_notifications_it_says_so_and_who_waits_looks(tmp_path: Path) -> None:
    url = postgres_url(tmp_path)
    for address, why in ((f"{url}?notify=off", "notify=off"), (behind_pooler(url), "a pooler is in between")):
        store = open_store(address)
        job = await running(store, queue=f"q{why[0]}")
        vigil = store.signals.vigil(Told())
        vigil.watch(job.id, job.queue)
        await until(lambda: _says(vigil, why))  # noqa: B023
        await vigil.close()
        app = App(address)
        waiting: asyncio.Task[Any] = asyncio.create_task(Handle(app, job.id).aresult(timeout=30))
        await looked(app)
        await settle(store, completed(job, "7"))
        assert await waiting == 7
        await app.aclose()
        await store.close()


async def _says(vigil: Any, why: str) -> bool:
    return why in (vigil.silence or "")


@asynccontextmanager
async def waiting_for(url: str, settler: Store) -> AsyncIterator[tuple["asyncio.Task[Any]", Claimed]]:
    """Somebody at this address waits for a job that runs, and is told of it if it ends."""
    app = App(url)
    job = await running(settler)
    waiting: asyncio.Task[Any] = asyncio.create_task(Handle(app, job.id).aresult(timeout=60))
    await until(lambda: _listens(app))
    yield waiting, job
    await app.aclose()


async def _listens(app: App) -> bool:
    return app._berth.lookout(await app._ready())._vigil.silence is None


@pytest.mark.usefixtures("nobody_looks_by_himself")
@pytest.mark.parametrize("mode", [Mode.FAST, Mode.IMMEDIATE])
async def test_who_waits_hears_of_it_after_the_server_was_started_again(
    postgres_server: PostgresServer, mode: Mode
) -> None:
    settler = open_store(postgres_server.dsn())
    async with waiting_for(postgres_server.dsn(), settler) as (waiting, job):
        await asyncio.to_thread(postgres_server.restart, mode)
        await settle(settler, completed(job, "7"))
        assert await waiting == 7
    await settler.close()


async def test_who_waits_behind_a_line_that_falls_silent_has_the_result_when_it_speaks_again(tmp_path: Path) -> None:
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
    with pytest.raises(
        TimeoutError, match=f"^job {id_} was pending when last seen; what became of it is not known: "
    ):
        await waiting
    await app.aclose()
    await settler.close()
