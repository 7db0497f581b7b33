"""The wire: one connection for all calls of a loop, one for each caller without a loop."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import NoScriptError, ResponseError

from tests.support.servers.redis import new_redis
from tests.support.servers.redis_places import redis_place
from windlass.store.redis.connection.driver import Word
from windlass.store.redis.connection.errors import NotReplicated
from windlass.store.redis.connection.wire import Call, ServerWire
from windlass.store.redis.scripts.loader import script

SECONDS = 10.0


@pytest.fixture
def dsn(tmp_path: Path) -> str:
    return redis_place(tmp_path).partition("?")[0]


@pytest.fixture
def key(tmp_path: Path) -> str:
    return redis_place(tmp_path).partition("=")[2]


async def test_a_wait_for_replicas_that_is_refused_is_no_certainty(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is made: that it may be lost is all that is known."""
    line = ServerWire(dsn, replicas=1)

    async def refuse_wait(commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        assert commands[-1][0] == "WAIT"
        return [b"done", ResponseError("NOPERM this user has no permissions to run the 'wait' command")]

    monkeypatch.setattr(line, "pipelined", refuse_wait)
    with pytest.raises(NotReplicated, match="WAIT for replicas was refused"):
        await line.replicated([("HSET", "k", "f", "v")], SECONDS)


async def test_a_call_that_was_refused_is_certain_however_many_replicas_answer(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, refusal = ServerWire(dsn, replicas=1), ResponseError("OOM command not allowed")

    async def refuse(commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        return [refusal, 0]

    monkeypatch.setattr(line, "pipelined", refuse)
    assert await line.replicated([("HSET", "k", "f", "v")], SECONDS) == [refusal]


async def test_what_is_done_stays_so_when_the_rest_cannot_be_repeated(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two scripts is not known to the server, and cannot be told to it: the other one is done."""
    line, lost = ServerWire(dsn), Disconnected("Error 111 connecting to 127.0.0.1:1. Connection refused.")
    trips: Iterator[list[Any] | Exception] = iter([[b"done", NoScriptError("no")], lost])

    async def pipelined(commands: Sequence[tuple[Word, ...]], seconds: float) -> list[Any]:
        trip = next(trips)
        if isinstance(trip, Exception):
            raise trip
        return trip

    monkeypatch.setattr(line, "pipelined", pipelined)
    calls = [Call(script("check_counts"), ("k",), ()), Call(script("unfinished_work"), ("k",), ())]
    assert await line.calls(calls, SECONDS) == [b"done", lost]


async def test_calls_at_the_same_time_get_each_its_own_answer(dsn: str) -> None:
    line = ServerWire(dsn)
    asked = [f"{number}" * 1000 for number in range(200)]
    answers = await asyncio.gather(*(line.command("ECHO", each, seconds=SECONDS) for each in asked))
    await line.close()

    assert answers == [each.encode() for each in asked]


async def test_a_call_that_gives_up_does_not_take_the_answer_of_the_next(dsn: str, key: str) -> None:
    line = ServerWire(dsn)
    await line.command("PING", seconds=SECONDS)
    blocked = asyncio.create_task(line.command("BLPOP", key, 0, seconds=0.05))
    with pytest.raises(TimeoutError):
        await blocked
    after = asyncio.create_task(line.command("ECHO", "after", seconds=SECONDS))
    other = ServerWire(dsn)
    await other.command("RPUSH", key, "late", seconds=SECONDS)

    assert await after == b"after"
    await line.close()
    await other.close()


async def test_a_cancelled_call_does_not_take_the_answer_of_the_next(dsn: str, key: str) -> None:
    line, other = ServerWire(dsn), ServerWire(dsn)
    await line.command("PING", seconds=SECONDS)
    blocked = asyncio.create_task(line.command("BLPOP", key, 0, seconds=SECONDS))
    await asyncio.sleep(0)
    blocked.cancel()
    after = asyncio.create_task(line.command("ECHO", "after", seconds=SECONDS))
    await other.command("RPUSH", key, "late", seconds=SECONDS)

    assert await after == b"after"
    with pytest.raises(asyncio.CancelledError):
        await blocked
    await line.close()
    await other.close()


async def test_a_closed_connection_fails_every_waiting_call_and_is_made_anew(dsn: str, key: str) -> None:
    line, other = ServerWire(dsn), ServerWire(dsn)
    number = await line.command("CLIENT", "ID", seconds=SECONDS)
    waiting = [asyncio.create_task(line.command("BLPOP", key, 0, seconds=SECONDS)) for _ in range(3)]
    await asyncio.sleep(0)
    await other.command("CLIENT", "KILL", "ID", number, seconds=SECONDS)
    ends = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(end) for end in ends] == [Disconnected] * 3
    assert await line.command("ECHO", "again", seconds=SECONDS) == b"again"
    await line.close()
    await other.close()


async def test_an_error_of_the_server_is_that_of_its_command_only(dsn: str) -> None:
    line = ServerWire(dsn)
    with pytest.raises(ResponseError):
        await line.command("NO-SUCH-COMMAND", seconds=SECONDS)

    assert await line.command("ECHO", "fine", seconds=SECONDS) == b"fine"
    await line.close()


def test_without_a_loop_a_connection_that_the_server_closed_is_noticed_before_it_is_used(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.store.redis.connection.pipe.TRUSTED_SECONDS", 0.0)
    line, other = ServerWire(dsn), ServerWire(dsn)
    number = _now(line, "CLIENT", "ID")
    _now(other, "CLIENT", "KILL", "ID", str(number))

    assert _now(line, "ECHO", "again") == b"again"
    assert _now(line, "CLIENT", "ID") != number
    _end(line, other)


def test_without_a_loop_many_threads_get_each_its_own_answer(dsn: str) -> None:
    line = ServerWire(dsn)
    asked = [f"{number}" * 100 for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda each: _now(line, "ECHO", each), asked))
    _end(line)

    assert answers == [each.encode() for each in asked]


def _now(line: ServerWire, *words: str) -> object:
    """Nothing may suspend where there is no loop."""
    with pytest.raises(StopIteration) as end:
        line.command(*words, seconds=SECONDS).send(None)
    return end.value.value


def _end(*lines: ServerWire) -> None:
    for line in lines:
        with pytest.raises(StopIteration):
            line.close().send(None)


async def test_a_server_that_reads_nothing_is_not_waited_for_longer_than_was_said() -> None:
    """Much was written, and it takes none of it: there is more to wait for than an answer."""
    server = new_redis()
    server.start()
    line = ServerWire(server.url)
    await line.command("PING", seconds=SECONDS)
    server.freeze()
    try:
        async with asyncio.timeout(SECONDS):
            with pytest.raises((TimeoutError, Disconnected)):
                await line.command("SET", "large", b"x" * 50_000_000, seconds=0.2)
    finally:
        server.thaw()
    assert await line.command("PING", seconds=SECONDS) == b"PONG"
    await line.close()
    server.remove()


async def test_a_call_cancelled_while_writing_leaves_none_with_the_answer_of_another() -> None:
    server = new_redis()
    server.start()
    line = ServerWire(server.url)
    await line.command("PING", seconds=SECONDS)
    server.freeze()
    large = asyncio.create_task(line.command("SET", "large", b"x" * 50_000_000, seconds=SECONDS))
    behind = asyncio.create_task(line.command("ECHO", "behind", seconds=SECONDS))
    await asyncio.sleep(0.05)
    large.cancel()
    await asyncio.wait([large])
    after = [asyncio.create_task(line.command("ECHO", f"{n}", seconds=SECONDS)) for n in range(5)]
    await asyncio.sleep(0.05)
    server.thaw()
    answers = await asyncio.gather(*after)
    assert answers == [f"{n}".encode() for n in range(5)]
    with pytest.raises(Disconnected):
        await behind
    await line.close()
    server.remove()
