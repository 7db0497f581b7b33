"""A server that reads its file, or is refused for a while, is waited for by workers that have worked before."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.processes import Process, Processes, until
from tests.support.seed import enqueue_one, status_of
from tests.support.servers.redis import RedisServer, new_redis
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.redis.connection.driver import Word
from windlass.store.redis.connection.wire import ServerWire

APP = """
from windlass import App

app = App()
app.queue("default", timeout="1m")  # declared, so that a runner asks the store before it starts


@app.task(type="t")
async def handle() -> None:
    pass
"""
ENTRIES = 50_000
"""Of the file that is read, for some seconds if nothing ends the delay. After each 1024 the server hears others."""


@pytest.fixture
def server() -> Iterator[RedisServer]:
    made = new_redis()
    made.start()
    yield made
    made.remove()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    (tmp_path / "shop.py").write_text(APP)
    started = Processes(tmp_path)
    yield started
    started.end()


def _restart_slowly(server: RedisServer) -> None:
    """Until it has begun to read its file."""
    with redis.Redis(port=server.port) as client, client.pipeline(transaction=False) as pipeline:
        for number in range(ENTRIES):
            pipeline.set("ballast", number)
        pipeline.execute()
    server.stop()
    with (server.folder / "redis.conf").open("a") as settings:
        settings.write("key-load-delay 50\n")
    server.start(wait=False)
    until(lambda: _is_loading(server), "Redis reads its file")


def _is_loading(server: RedisServer) -> bool:
    try:
        return bool(server.info()["loading"])
    except redis.ConnectionError:
        return False


async def test_what_a_server_says_of_itself_before_it_has_read_its_file_is_not_believed(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it writes no file, and may be ready before it is asked for anything else."""
    before = open_store(server.url)
    await enqueue_one(before)
    await before.close()
    _restart_slowly(server)
    original = ServerWire.each

    async def each(line: ServerWire, *words: Word, seconds: float) -> list[Any]:
        answers = await original(line, *words, seconds=seconds)
        server.config(key_load_delay=0)
        until(lambda: not _is_loading(server), "Redis has read its file")
        return answers

    monkeypatch.setattr(ServerWire, "each", each)
    store = open_store(server.url)
    with pytest.raises(StoreUnavailable, match="LOADING") as caught:
        await enqueue_one(store)
    assert not caught.value.lasting
    assert not caught.value.maybe_done
    await enqueue_one(store)
    assert (await store.operator.counts()).totals["pending"] == 2
    await store.close()


async def test_a_worker_whose_only_runner_dies_while_the_server_is_refused_goes_on_afterwards(
    server: RedisServer, processes: Processes
) -> None:
    store = open_store(server.url)
    worker = _start_worker(processes, server)
    await _until_completed(store, await enqueue_one(store))
    server.config(appendonly="no")
    os.kill(worker.runner(), signal.SIGKILL)
    until(lambda: "it could not start" in worker.output or worker.ended, "the next runner is refused")
    server.config(appendonly="yes")
    await _until_completed(store, await enqueue_one(store))
    await store.close()


def _start_worker(processes: Processes, server: RedisServer) -> Process:
    words = ("-m", "windlass", "worker", "shop:app", "--processes", "1")
    return processes.start("worker", *words, environment={"WINDLASS_STORE": server.url})


async def _until_completed(store: Store, id_: str) -> None:
    async with asyncio.timeout(30):
        while await status_of(store, id_) is not Status.COMPLETED:  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.05)
