"""Connections: slow, large and abandoned requests take a bounded time and store nothing; many do no harm."""

import asyncio
import contextlib
import logging
import resource
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.server.test_serve import Served
from windlass import App
from windlass.server import decode, protocol
from windlass.server.serve import ServerConfig, make_server

BODY = b'{"type": "mail.welcome", "payload": {"user_id": 1}}'


class Listening:
    """A server on a port, in this event loop."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self._token = token
        self.opened: list[asyncio.StreamWriter] = []

    async def send(self, *parts: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection with these bytes sent."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.opened.append(writer)
        for part in parts:
            writer.write(part)
            await writer.drain()
        return reader, writer

    def head(self, length: int, *more: str) -> bytes:
        """The head of POST /jobs."""
        lines = ["POST /api/v1/jobs HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self._token}"]
        lines += ["Content-Type: application/json", f"Content-Length: {length}", *more]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(20):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


@pytest.fixture
async def listening(app: App) -> AsyncIterator[Listening]:
    token = (await app.tokens.acreate("t", ["admin"])).text
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(100)
        server = make_server(app, ServerConfig(unready=0, drain=5))
        task = asyncio.create_task(server.serve([held]))
        await eventually(lambda: server.started)
        made = Listening(held.getsockname()[1], token)
        yield made
        for writer in made.opened:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        server.should_exit = True
        await task


async def _ended(reader: asyncio.StreamReader) -> bytes:
    """What was answered until the server closed the connection."""
    async with asyncio.timeout(20):
        with contextlib.suppress(ConnectionResetError):
            return await reader.read()
    return b""


async def _status(reader: asyncio.StreamReader) -> int:
    async with asyncio.timeout(20):
        return int((await reader.readline()).split()[1])


async def test_a_head_that_does_not_come_in_time_is_cut(
    listening: Listening, monkeypatch: pytest.MonkeyPatch, app: App
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    silent = await listening.send()
    half = await listening.send(b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n")
    second = await listening.send(listening.head(len(BODY)) + BODY)
    assert await _status(second[0]) == 201
    while (await second[0].readline()).strip():
        pass
    second[1].write(b"GET /healthz HTT")
    assert [await _ended(silent[0]), await _ended(half[0])] == [b"", b""]
    assert b"HTTP/1.1" not in await _ended(second[0])
    good = await listening.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert await _status(good[0]) == 200


async def test_a_body_that_does_not_come_in_time_is_answered_and_not_stored(
    listening: Listening, monkeypatch: pytest.MonkeyPatch, app: App
) -> None:
    monkeypatch.setattr(decode, "BODY_SECONDS", 0.2)
    reader, _writer = await listening.send(listening.head(len(BODY)), BODY[:20])
    answer = await _ended(reader)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"code":"body_timeout"' in answer
    assert (await app.stats.acounts()).totals["pending"] == 0


@pytest.mark.parametrize("number", [1, 10_000])
async def test_a_head_that_is_too_large_is_refused(listening: Listening, number: int) -> None:
    line = f"X-Padding: {'x' * (1_000_000 // number)}\r\n".encode()
    reader, writer = await listening.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
    with contextlib.suppress(ConnectionError):
        for _ in range(number):
            writer.write(line)
            await writer.drain()
    assert (await _ended(reader))[:12] in (b"HTTP/1.1 431", b"")


async def test_a_client_that_leaves_in_the_middle_leaves_nothing(
    listening: Listening, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    before = {task for task in asyncio.all_tasks() if not task.done()}
    with caplog.at_level(logging.INFO):
        for sent in (BODY[:20], b"", BODY[:-1]):
            _, writer = await listening.send(listening.head(len(BODY)), sent)
            writer.transport.abort()
        whole = [await listening.send(listening.head(len(BODY)) + BODY) for _ in range(5)]
        for _, writer in whole:
            writer.transport.abort()
        await eventually(lambda: not {task for task in asyncio.all_tasks() if not task.done()} - before)
    assert (await app.stats.acounts()).totals["pending"] <= len(whole), "each is stored wholly or not at all"
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX\x00: y\r\n\r\n", 400),
        (b"GET /%zz%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    ],
)
async def test_what_is_no_http_is_refused_and_the_next_request_is_answered(
    listening: Listening, sent: bytes, status: int
) -> None:
    reader, _writer = await listening.send(sent)
    assert await _status(reader) == status
    good = await listening.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert await _status(good[0]) == 200


def test_five_thousand_open_connections_do_not_keep_others_out(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 6_000:
        pytest.skip("this user may not open 6,000 files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    served = Served(tmp_path, f"sqlite:///{tmp_path}/jobs.db")
    held: list[socket.socket] = []
    try:
        served.start()
        served.log_in()
        held.extend(socket.create_connection(("127.0.0.1", served.port)) for _ in range(5_000))
        assert served.status("/api/v1/jobs") == 200
        assert served.client.post("/api/v1/jobs", json={"type": "mail"}).status_code == 201
    finally:
        for each in held:
            each.close()
        served.end()
