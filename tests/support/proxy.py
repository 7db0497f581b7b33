"""A line to a server that can fall silent without being closed, as networks do, or be cut."""

import asyncio
import contextlib
import socket
import struct
import threading
from types import TracebackType


class Proxy:
    """Forwards TCP from a port of its own, in a thread of its own, for as long as the line is open."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._lines: set[asyncio.Task[None]] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        self.port = 0

    def __enter__(self) -> "Proxy":
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def fall_silent(self) -> None:
        """From now on nothing comes through, in either direction, and nothing is reported."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def speak(self) -> None:
        """What was held back comes through now, and all that follows."""
        self._loop.call_soon_threadsafe(self._open.set)

    def cut(self, *, reset: bool) -> int:
        """Close every connection that there is, by RST or by FIN: how many there were. New ones are let through."""
        return asyncio.run_coroutine_threadsafe(self._cut(reset), self._loop).result()

    async def _cut(self, reset: bool) -> int:
        cut = list(self._clients)
        for client in cut:
            connection: socket.socket = client.get_extra_info("socket")
            if reset and connection.fileno() >= 0:  # else its client has closed it meanwhile
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.transport.abort()
        return len(cut)

    async def _serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = self._loop.create_task(self._join(reader, writer))
        self._lines.add(line)
        line.add_done_callback(self._lines.discard)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        try:
            await self._forward_both(reader, writer)
        finally:
            self._clients.discard(writer)

    async def _forward_both(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            await self._open.wait()
            back, forth = await asyncio.open_connection(*self._target)
            with contextlib.closing(forth):
                ways = [self._loop.create_task(self._forward(a, b)) for a, b in ((reader, forth), (back, writer))]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        await self._open.wait()  # that the other side has closed does not come through either

    async def _end(self) -> None:
        self._server.close()
        lines = list(self._lines)
        for line in lines:
            line.cancel()
        await asyncio.gather(*lines, return_exceptions=True)
        await asyncio.sleep(0)
