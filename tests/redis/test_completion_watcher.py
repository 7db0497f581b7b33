"""Waiting for results on Redis: who listens where, and what is when the line to the server is lost."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from tests.support.proxy import Proxy
from tests.support.reported import looked, watched
from tests.support.seed import claim_one, completed, dead, enqueue, enqueue_one, open_lease, running, settle
from tests.support.servers.redis import RedisServer, new_redis
from tests.support.servers.redis_places import redis_place
from windlass import App, Handle
from windlass.client.runtime import result_waiter as result_waiter
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Claimed
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.redis.connection.inspection import acl_rules

FOR_EVER = 10_000.0


@pytest.fixture
def without_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_waiter, "pause_after", lambda seconds, signalled: FOR_EVER)


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """One of the test's own."""
    made = new_redis()
    made.start()
    yield made
    made.remove()


async def until(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not found():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def channels(server: RedisServer) -> list[str]:
    """Where there is a listener."""
    return sorted(each.decode().partition(":ends")[2] for each in server.execute("PUBSUB", "CHANNELS", "*"))


@asynccontextmanager
async def waiting_for(url: str, settler: Store) -> AsyncIterator[tuple["asyncio.Task[Any]", Claimed]]:
    """A waiter at this address for a job that runs, told of it if it ends."""
    app = App(url)
    job = await running(settler)
    waiting: asyncio.Task[Any] = asyncio.create_task(Handle(app, job.id).aresult(timeout=60))
    await asyncio.sleep(0)
    there = app._store_handle.result_waiter(await app._ready())
    await until(lambda: there._watcher.outage is None)
    yield waiting, job
    await app.aclose()


async def test_there_are_listeners_for_what_is_watched_and_for_nothing_else(server: RedisServer) -> None:
    store = open_store(server.url)
    await open_lease(store)
    first, second = await enqueue(store, 2)
    watcher, reported = await watched(store, first, second)
    assert channels(server) == ["", *sorted((f":{first}", f":{second}"))]
    watcher.unwatch(first)
    await until(lambda: channels(server) == ["", f":{second}"])
    watcher.watch(first, "default")
    assert await reported.of(first)
    await watcher.close()
    await until(lambda: channels(server) == [])
    await store.close()


async def test_nothing_is_reported_of_jobs_that_are_not_awaited(server: RedisServer) -> None:
    store = open_store(server.url)
    await open_lease(store)
    unwatched, wanted = await enqueue(store, 2)
    watcher, reported = await watched(store, wanted)
    with redis.Redis(port=server.port) as client, client.pubsub() as listener:
        listener.psubscribe("*")
        assert listener.get_message(timeout=10)["type"] == "psubscribe"
        jobs = [await claim_one(store), await claim_one(store)]
        await store.jobs.settle([completed(job) for job in jobs])
        assert await reported.of(wanted)
        said = []
        while word := listener.get_message(timeout=0.1):
            said.append(word["channel"].decode().rpartition(":")[2])
    assert wanted in said
    assert unwatched not in said
    await watcher.close()
    await store.close()


async def test_a_job_that_goes_to_another_queue_is_reported(server: RedisServer) -> None:
    store = open_store(server.url)
    id_ = await enqueue_one(store)
    watcher, reported = await watched(store, id_)
    await store.operator.change([id_], JobChange(queue="other"))
    assert await reported.of(id_)
    await watcher.close()
    await store.close()


async def test_a_listener_that_is_cut_off_listens_again_and_misses_nothing(server: RedisServer) -> None:
    store = open_store(server.url)
    job = await running(store)
    watcher, reported = await watched(store, job.id)
    assert server.execute("CLIENT", "KILL", "TYPE", "pubsub") == 1
    await settle(store, dead(job))
    assert await reported.of(job.id)
    assert watcher.outage is None
    await watcher.close()
    await store.close()


@pytest.mark.usefixtures("without_polling")
async def test_a_waiter_gets_the_result_after_the_server_was_started_again(server: RedisServer) -> None:
    settler = open_store(server.url)
    async with waiting_for(server.url, settler) as (waiting, job):
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        await settle(settler, completed(job, "7"))
        assert await waiting == 7
    await settler.close()


async def test_a_waiter_behind_a_silent_connection_has_the_result_when_it_answers_again(tmp_path: Path) -> None:
    url = redis_place(tmp_path)
    host, port = urlsplit(url).hostname, urlsplit(url).port
    assert host is not None
    assert port is not None
    settler = open_store(url)
    with Proxy(host, port) as proxy:
        async with waiting_for(url.replace(f":{port}", f":{proxy.port}"), settler) as (waiting, job):
            proxy.fall_silent()
            await settle(settler, completed(job, "7"))
            proxy.speak()
            assert await waiting == 7
    await settler.close()


@pytest.mark.parametrize("forbidden", ["-pubsub|numsub", "-subscribe"])
async def test_a_user_without_the_right_to_listen_waits_all_the_same(server: RedisServer, forbidden: str) -> None:
    rules = [rule for rule in acl_rules() if rule != f"+{forbidden[1:]}"]
    server.execute("ACL", "SETUSER", "windlass", "on", ">secret", *rules)
    url = f"redis://windlass:secret@127.0.0.1:{server.port}/0"
    settler, app = open_store(url), App(url)
    job = await running(settler)
    waiting: asyncio.Task[Any] = asyncio.create_task(Handle(app, job.id).aresult(timeout=60))
    await looked(app)
    await settle(settler, completed(job, "7"))
    assert await waiting == 7
    await app.aclose()
    await settler.close()
