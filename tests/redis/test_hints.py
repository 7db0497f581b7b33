"""Hints: a process that serves queues hears of work in them for itself, and notices when it hears no more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.proxy import Proxy
from tests.support.seed import claim_one, enqueue, enqueue_one, open_lease, request, requeued, settle
from tests.support.servers.redis import new_redis
from tests.support.servers.redis_places import redis_place
from windlass.core.flow.queue import QueueSettings
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.redis.signals import subscription as subscription


@asynccontextmanager
async def two(url: str) -> AsyncIterator[tuple[Store, Store]]:
    """A producer, and a runner of the queue `default` that has begun to listen."""
    producer, server = open_store(url), open_store(url)
    mark = server.signals.cursor()
    server.signals.subscribe(["default"])
    assert await server.signals.wait(mark, 20), "a new subscriber reads once"
    try:
        yield producer, server
    finally:
        await producer.close()
        await server.close()


async def hears(store: Store, mark: int, seconds: float = 20) -> bool:
    return await store.signals.wait(mark, seconds)


async def silence_of(store: Store) -> str:
    """Why no hint arrives, as soon as that is so; nothing reports it."""
    async with asyncio.timeout(20):
        while (why := store.signals.outage) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return why


def hears_all(store: Store) -> bool:
    return store.signals.outage is None


async def test_an_enqueue_of_another_process_is_signalled(tmp_path: Path) -> None:
    async with two(redis_place(tmp_path)) as (producer, server):
        mark = server.signals.cursor()
        await enqueue_one(producer)
        assert await hears(server, mark)
        assert hears_all(server)


async def test_of_other_queues_nothing_is_heard(tmp_path: Path) -> None:
    async with two(redis_place(tmp_path)) as (producer, server):
        mark = server.signals.cursor()
        await enqueue_one(producer, queue="other")
        await enqueue_one(producer)
        assert await hears(server, mark)
        assert server.signals.cursor() == mark + 1


async def test_as_long_as_a_type_has_work_nothing_more_is_said(tmp_path: Path) -> None:
    async with two(redis_place(tmp_path)) as (producer, server):
        mark = server.signals.cursor()
        for _ in range(5):
            await enqueue(producer, 3)
        await enqueue_one(producer, type="other")
        await open_lease(producer)
        await producer.jobs.claim(request())
        await enqueue_one(producer)
        async with asyncio.timeout(20):
            while server.signals.cursor() < mark + 3:
                await hears(server, server.signals.cursor())
        assert not await hears(server, mark + 3, 0.05), "once for each of the types, and once more after it was empty"


async def test_a_job_that_is_requeued_sends_a_hint(tmp_path: Path) -> None:
    async with two(redis_place(tmp_path)) as (producer, server):
        await open_lease(producer)
        await enqueue_one(producer)
        job = await claim_one(producer)
        mark = server.signals.cursor()
        await settle(producer, requeued(job))
        assert await hears(server, mark)


async def test_a_due_job_is_heard_of_when_it_is_admitted(tmp_path: Path) -> None:
    async with two(redis_place(tmp_path)) as (producer, server):
        await enqueue_one(producer, delay=1)
        mark = server.signals.cursor()
        await producer.jobs.admit(10)
        assert await hears(server, mark)


@pytest.mark.parametrize("lifted", ["pause", "limit"])
async def test_a_queue_that_lets_jobs_start_again_sends_a_hint(tmp_path: Path, lifted: str) -> None:
    async with two(redis_place(tmp_path)) as (producer, server):
        if lifted == "pause":
            await producer.queues.pause("default", 60 * SECOND)
        else:
            await producer.queues.change("default", QueueSettings(max_concurrency=1))
            await open_lease(producer)
            await enqueue_one(producer)
            await claim_one(producer)
        await enqueue_one(producer)
        await asyncio.sleep(0.05)
        mark = server.signals.cursor()
        if lifted == "pause":
            await producer.queues.resume("default")
        else:
            await producer.queues.change("default", QueueSettings(max_concurrency=5))
        assert await hears(server, mark)


async def test_a_slot_that_is_free_again_in_a_full_queue_is_heard_of(tmp_path: Path) -> None:
    async with two(redis_place(tmp_path)) as (producer, server):
        await producer.queues.change("default", QueueSettings(max_concurrency=1))
        await open_lease(producer)
        await enqueue(producer, 2)
        job = await claim_one(producer)
        await asyncio.sleep(0.05)
        mark = server.signals.cursor()
        await settle(producer, requeued(job))
        assert await hears(server, mark)


async def test_a_lost_subscription_is_said_and_made_again() -> None:
    redis = new_redis()
    redis.start()
    try:
        async with two(redis.url) as (producer, server):
            redis.stop()
            assert (await silence_of(server)).startswith("the subscription is lost: ")
            mark = server.signals.cursor()
            redis.start()
            assert await hears(server, mark), "something may have been missed"
            assert hears_all(server)
            mark = server.signals.cursor()
            await enqueue_one(producer)
            assert await hears(server, mark)
    finally:
        redis.stop()


async def test_a_connection_that_died_silently_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "PROBE_SECONDS", 0.02)
    monkeypatch.setattr(subscription, "TIMEOUT_SECONDS", 0.2)
    address = urlsplit(redis_place(tmp_path))
    with Proxy(address.hostname or "", address.port or 0) as line:
        url = address._replace(netloc=f"127.0.0.1:{line.port}").geturl()
        async with two(url) as (_, server):
            await asyncio.sleep(0.1)
            assert hears_all(server), "who answers is there"
            line.fall_silent()
            assert "no answer in time" in await silence_of(server)
            mark = server.signals.cursor()
            line.speak()
            assert await hears(server, mark)
            assert hears_all(server)
