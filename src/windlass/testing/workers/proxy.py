"""A proxy before a REST server that loses requests and replies, for tests of workers."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import msgspec

PREFIX = "/api/v1"
_UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nConnection: close\r\n"
_PROBLEM = json.dumps({"status": 503, "code": "store_unavailable", "title": "away, as a test asked for"}).encode()


class Exchange(msgspec.Struct):
    """One request, and the answer if one came."""

    method: str
    path: str
    body: Any
    answer: Any = None

    @property
    def is_claim(self) -> bool:
        """Whether it claims jobs."""
        return self.method == "POST" and self.path == "/claims"

    @property
    def jobs(self) -> list[Any]:
        """The jobs that a claim returned."""
        found: list[Any] = (self.answer or {}).get("jobs", [])
        return found


Check = Callable[[Exchange], bool]


class LossyProxy:
    """Forwards HTTP/1.1 requests from a port of its own, one on each connection, in a thread of its own."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lossy proxy", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[asyncio.StreamWriter] = set()
        """Connections of workers and to the server; some may be closed already."""
        self.port = 0
        self.exchanges: list[Exchange] = []
        """Everything that reached the server, in order of arrival."""
        self.restore()

    def __enter__(self) -> "LossyProxy":
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def restore(self) -> None:
        """Lose nothing."""
        self.lose_request: Check = lambda exchange: False
        """Whether to cut the connection before the server gets this request."""
        self.lose_reply: Check = lambda exchange: False
        """Whether to cut the connection instead of forwarding the answer to this request."""
        self.is_away = False
        """Whether connections are closed at once."""
        self.is_failing = False
        """Whether every request is answered with 503."""

    def go_away(self) -> None:
        """Close every connection, and accept none until `come_back`."""
        self.is_away = True
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result()

    def come_back(self) -> None:
        """Forward again."""
        self.is_away = False

    def claims(self) -> list[Exchange]:
        """All claims so far."""
        return [exchange for exchange in self.exchanges if exchange.is_claim]

    def has_passed_on(self, job: str) -> bool:
        """Whether the answer of a claim with this job was forwarded."""
        return any(job == each.get("id") for claim in self.claims() for each in claim.jobs)

    async def _listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=2**26)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _end(self) -> None:
        await self._cut()
        # The loop has a task for each connection that it has just accepted. One that begins after the server is
        # closed would leave its connection open.
        while accepting := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(accepting, return_when=asyncio.FIRST_COMPLETED)
            await self._cut()
        self._server.close()

    async def _cut(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Also connections whose task had not begun, or that still have to send data.
        for connection in self._connections:
            connection.transport.abort()
        self._connections.clear()
        await asyncio.sleep(0)  # the loop closes them in its next round

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                if not self.is_away:
                    await self._exchange(reader, writer)
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, body = await _message(reader)
        method, path = head.decode("latin-1").split(" ", 2)[:2]
        exchange = Exchange(method, path.removeprefix(PREFIX), _json(body))
        if self.is_failing:
            writer.write(_UNAVAILABLE + b"Content-Length: %d\r\n\r\n" % len(_PROBLEM) + _PROBLEM)
            await writer.drain()
            return
        if self.lose_request(exchange):
            return
        self.exchanges.append(exchange)
        reply = await self._ask(_closing(head) + body, reader)
        if reply is None:
            return
        exchange.answer = _json(reply[1])
        if not self.lose_reply(exchange):
            writer.write(_closing(reply[0]) + reply[1])
            await writer.drain()

    async def _ask(self, request: bytes, client: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
        """The server's reply; None if the client closes first: then the connection to the server is closed too."""
        back, forth = await asyncio.open_connection(*self._target, limit=2**26)
        self._connections.add(forth)
        forth.write(request)
        reading, leaving = asyncio.ensure_future(_message(back)), asyncio.ensure_future(client.read(1))
        try:
            await asyncio.wait([reading, leaving], return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else None
        finally:
            for task in (reading, leaving):
                task.cancel()
            await asyncio.gather(reading, leaving, return_exceptions=True)
            forth.close()


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return head, await reader.readexactly(int(value))
    return head, b""


def _closing(head: bytes) -> bytes:
    """The same head, with the information that the connection ends with this message."""
    lines = [line for line in head.split(b"\r\n") if line and not line.lower().startswith(b"connection:")]
    return b"\r\n".join([*lines, b"Connection: close", b"", b""])


def _json(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return None
