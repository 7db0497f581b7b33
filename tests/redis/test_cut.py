"""Connections that are cut, at any moment and on both event loops: callers see connection errors and nothing else."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as Disconnected

from tests.support.loops import LOOPS, run_on
from tests.support.proxy import Proxy
from tests.support.seed import enqueue_one
from tests.support.servers.redis_places import redis_place, redis_prefix, shared_redis
from windlass.errors import StoreUnavailable, WindlassError
from windlass.store.open import open_store
from windlass.store.redis.connection.wire import ServerWire
from windlass.store.redis.signals.subscription import connection_to, next_message
from windlass.store.redis.store import RedisStore

SECONDS = 10.0
TURNS = 12
"""Turns of a loop: within so many a cut has come to all who must know of it."""

Body = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(params=sorted(LOOPS))
def run(request: pytest.FixtureRequest) -> Callable[[Body], None]:
    """Runs a test's body on one kind of loop."""
    return lambda body: run_on(request.param, body())


@pytest.fixture(params=["reset", "fin"])
def reset(request: pytest.FixtureRequest) -> bool:
    """Whether connections are cut by RST; otherwise by FIN."""
    return bool(request.param == "reset")


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    server = urlsplit(shared_redis())
    with Proxy(server.hostname or "", server.port or 0) as line:
        yield line


@contextlib.asynccontextmanager
async def _line(port: int) -> AsyncIterator[ServerWire]:
    line = ServerWire(f"redis://127.0.0.1:{port}/0")
    await line.command("PING", seconds=SECONDS)
    yield line
    await line.close()


def _connection(line: ServerWire) -> AbstractConnection:
    """The connection of this loop."""
    return line._pipes[asyncio.get_running_loop()]._pipes[0]._connection


def _abort(line: ServerWire) -> None:
    writer = _connection(line)._writer
    assert writer is not None
    writer.transport.abort()


async def _after(turns: int, line: ServerWire) -> Any:
    for _ in range(turns):
        await asyncio.sleep(0)
    return await line.command("ECHO", f"{turns}", seconds=SECONDS)


def test_calls_in_every_turn_around_a_cut_see_connection_errors_only(
    run: Callable[[Body], None], proxy: Proxy
) -> None:
    async def body() -> None:
        async with _line(proxy.port) as line:
            for _ in range(5):
                # Some have their turn before the loop tells of the cut, some after it.
                asking = [asyncio.create_task(_after(turns, line)) for turns in range(TURNS)]
                await asyncio.sleep(0)
                _abort(line)
                asking += [asyncio.create_task(_after(turns, line)) for turns in range(TURNS)]
                ends = await asyncio.gather(*asking, return_exceptions=True)
                assert [end for end in ends if isinstance(end, Exception) and type(end) is not Disconnected] == []
                assert ends[-1] == f"{TURNS - 1}".encode()

    run(body)


def test_a_connection_that_is_known_to_be_closed_is_replaced_before_anything_is_written(
    run: Callable[[Body], None], proxy: Proxy
) -> None:
    """Nothing was sent, so there is nothing to be in doubt of: the same call goes to a new connection."""

    async def body() -> None:
        async with _line(proxy.port) as line:
            before = await line.command("CLIENT", "ID", seconds=SECONDS)
            _abort(line)
            assert await line.command("CLIENT", "ID", seconds=SECONDS) != before

    run(body)


def test_a_connection_that_is_cut_while_unused_is_replaced(
    run: Callable[[Body], None], proxy: Proxy, reset: bool
) -> None:
    async def body() -> None:
        async with _line(proxy.port) as line:
            pipe = line._pipes[asyncio.get_running_loop()]._pipes[0]
            assert await asyncio.to_thread(proxy.cut, reset=reset) == 1
            await asyncio.wait_for(asyncio.wait([pipe._reader]), SECONDS)
            assert await line.command("ECHO", "again", seconds=SECONDS) == b"again"

    run(body)


def test_a_cut_between_a_call_and_its_answer_is_a_lost_connection(
    run: Callable[[Body], None], proxy: Proxy, reset: bool, tmp_path: Path
) -> None:
    key = redis_prefix(tmp_path)

    async def body() -> None:
        async with _line(proxy.port) as line:
            waiting = [asyncio.create_task(line.command("BLPOP", key, 0, seconds=SECONDS)) for _ in range(3)]
            await asyncio.sleep(0.01)
            assert await asyncio.to_thread(proxy.cut, reset=reset) == 1
            ends = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(end) for end in ends} == {Disconnected}
            assert await line.command("ECHO", "again", seconds=SECONDS) == b"again"

    run(body)


def test_a_cut_in_the_middle_of_a_large_write_is_a_lost_connection(
    run: Callable[[Body], None], proxy: Proxy, reset: bool
) -> None:
    async def body() -> None:
        async with _line(proxy.port) as line:
            proxy.fall_silent()
            large = asyncio.create_task(line.command("ECHO", b"x" * 50_000_000, seconds=SECONDS))
            writer = _connection(line)._writer
            assert writer is not None
            while not writer.transport.get_write_buffer_size():  # noqa: ASYNC110 - the transport gives no signal
                await asyncio.sleep(0.01)
            behind = asyncio.create_task(line.command("ECHO", "behind", seconds=SECONDS))
            await asyncio.sleep(0)
            await asyncio.to_thread(proxy.cut, reset=reset)
            proxy.speak()
            ends = await asyncio.gather(large, behind, return_exceptions=True)
            assert [type(end) for end in ends] == [Disconnected, Disconnected]
            assert await line.command("ECHO", "again", seconds=SECONDS) == b"again"

    run(body)


def test_a_cut_in_the_greeting_leaves_no_doubt(run: Callable[[Body], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The server hangs up on every connection: what was asked for never left."""

    async def body() -> None:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.abort()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        store = open_store(f"redis://127.0.0.1:{port}", deadline=SECONDS)
        assert isinstance(store, RedisStore)
        store._access.server.store_id = "known"
        monkeypatch.setattr(store._access.server.watch, "is_due", lambda: False)
        for _ in range(5):
            with pytest.raises(StoreUnavailable) as caught:
                await store._access.call("has_work", "default", ((),))
            assert not caught.value.maybe_done
        await store.close()
        server.close()

    run(body)


def test_a_listener_on_a_cut_connection_gets_a_connection_error(
    run: Callable[[Body], None], proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the one who would ask whether the connection is there still."""
    monkeypatch.setattr("windlass.store.redis.signals.subscription.PROBE_SECONDS", 0.001)

    async def body() -> None:
        for turns in range(TURNS):
            connection = connection_to(f"redis://127.0.0.1:{proxy.port}/0")
            await connection.connect()
            assert connection._writer is not None
            connection._writer.transport.abort()
            for _ in range(turns):
                await asyncio.sleep(0)
            with pytest.raises((Disconnected, OSError)):
                await next_message(connection)
            await connection.disconnect(nowait=True)

    run(body)


def test_producers_see_no_error_of_the_driver_or_the_loop(
    run: Callable[[Body], None], proxy: Proxy, reset: bool, tmp_path: Path
) -> None:
    """Many at once, while connections are cut: an answer or an error of ours; what was answered is stored."""
    place = redis_place(tmp_path).replace(str(urlsplit(shared_redis()).port), str(proxy.port))

    async def body() -> None:
        store = open_store(place, deadline=SECONDS)
        await enqueue_one(store)
        stored: list[str] = []
        errors: list[Exception] = []
        over = asyncio.Event()

        async def produce() -> None:
            while not over.is_set():
                try:
                    stored.append(await enqueue_one(store))
                except Exception as error:
                    errors.append(error)

        producers = [asyncio.create_task(produce()) for _ in range(10)]
        for _ in range(30):
            await asyncio.sleep(0.01)
            await asyncio.to_thread(proxy.cut, reset=reset)
        over.set()
        await asyncio.gather(*producers)
        assert [error for error in errors if not isinstance(error, WindlassError)] == []
        assert errors, "nothing was cut in the middle of anything"
        assert None not in await store.operator.get(stored[-200:])
        await store.close()

    run(body)
