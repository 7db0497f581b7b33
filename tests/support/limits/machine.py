"""The proxy: listens on a port of its own, in a thread of its own."""

import asyncio
import contextlib
import struct
import threading
from collections import Counter
from types import TracebackType
from urllib.parse import urlsplit, urlunsplit

from tests.support.limits.conversation import Conversation
from tests.support.limits.faults import Dice, Limits
from tests.support.limits.messages import CANCEL_REQUEST, GSS_REQUEST, SSL_REQUEST, Splitter

_CHUNK = 1 << 16


class LimitsProxy:
    """Connections to one PostgreSQL server, under limits. The server may be stopped and started meanwhile."""

    def __init__(self, host: str, port: int, limits: Limits) -> None:
        self._target = (host, port)
        self._limits = limits
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="limits", daemon=True)
        self._lines: set[asyncio.Task[None]] = set()
        self._accepted = 0
        self.counts: Counter[str] = Counter()
        """How many statements, commits and round trips there were, and how many failed."""
        self.errors: list[BaseException] = []
        """Mistakes of the proxy itself."""
        self.port = 0

    def start(self) -> None:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        assert not self.errors, self.errors

    def __enter__(self) -> "LimitsProxy":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def through(self, url: str) -> str:
        """The same database, through this proxy."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{self.port}"))

    async def _serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._accepted += 1
        dice = Dice(self._limits, self._accepted, self.counts)
        line = self._loop.create_task(_Line(dice, reader, writer).run(self._target))
        self._lines.add(line)
        line.add_done_callback(self._on_end)

    def _on_end(self, line: asyncio.Task[None]) -> None:
        self._lines.discard(line)
        if not line.cancelled() and (error := line.exception()) is not None:
            self.errors.append(error)

    async def _end(self) -> None:
        self._server.close()
        lines = list(self._lines)
        for line in lines:
            line.cancel()
        await asyncio.gather(*lines, return_exceptions=True)
        await asyncio.sleep(0)


class _Line:
    """One connection of a client, and its own to the server."""

    def __init__(self, dice: Dice, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._dice = dice
        self._reader, self._writer = reader, writer
        self._delayed: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def run(self, target: tuple[str, int]) -> None:
        with contextlib.closing(self._writer), contextlib.suppress(OSError, asyncio.IncompleteReadError):
            first = await self._greet()
            back, forth = await asyncio.open_connection(*target)
            with contextlib.closing(forth):
                forth.write(first)
                if first[4:8] == struct.pack("!i", CANCEL_REQUEST):
                    await back.read()  # the server closes the connection when it has cancelled
                else:
                    await self._pass_on(back, forth)

    async def _greet(self) -> bytes:
        """The first message that is for the server: encryption is declined here."""
        while True:
            head = await self._reader.readexactly(8)
            length, code = struct.unpack("!ii", head)
            if code not in (SSL_REQUEST, GSS_REQUEST):
                return head + await self._reader.readexactly(length - 8)
            self._writer.write(b"N")

    async def _pass_on(self, back: asyncio.StreamReader, forth: asyncio.StreamWriter) -> None:
        conversation = Conversation(self._dice, forth.write)
        ready = asyncio.Event()
        receiving = asyncio.create_task(self._receive())
        ways = {
            asyncio.create_task(self._forward(conversation, forth, ready)),
            asyncio.create_task(self._return(conversation, back, ready)),
        }
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (receiving, *ways):
                task.cancel()
            await asyncio.gather(receiving, *ways, return_exceptions=True)
        for way in done:
            way.result()

    async def _receive(self) -> None:
        """A message that comes while another is delayed is delayed no longer than if it came alone."""
        loop, data = asyncio.get_running_loop(), b"-"
        while data:
            try:
                data = await self._reader.read(_CHUNK)
            except OSError:
                data = b""
            self._delayed.put_nowait((loop.time() + self._dice.delay(), data))

    async def _forward(self, conversation: Conversation, forth: asyncio.StreamWriter, ready: asyncio.Event) -> None:
        loop, splitter = asyncio.get_running_loop(), Splitter()
        while True:
            due, data = await self._delayed.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                return
            for letter, whole in splitter.feed(data):
                if ready.is_set():
                    await conversation.request(letter, whole)
                else:
                    forth.write(whole)  # a password
            await forth.drain()

    async def _return(self, conversation: Conversation, back: asyncio.StreamReader, ready: asyncio.Event) -> None:
        splitter = Splitter()
        while data := await back.read(_CHUNK):
            answers = []
            for letter, whole in splitter.feed(data):
                if ready.is_set():
                    answers.append(conversation.answer(letter, whole))
                else:
                    answers.append(whole)
                    if letter == b"Z":
                        ready.set()
            self._writer.write(b"".join(answers))
            await self._writer.drain()
