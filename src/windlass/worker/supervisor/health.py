"""The health port: /healthz, /readyz and /startupz for orchestrators, which say only ok or not, and /metrics."""

import asyncio
import re
from collections.abc import Awaitable, Callable

from windlass.errors import ConfigError

MAX_REQUEST_LENGTH = 8192
SECONDS = 5.0


class Health:
    """Answers probes (alive, ready, started) and scrapes.

    Any answer means alive: an event loop that hangs gives none, and a restart fixes nothing else.
    """

    def __init__(
        self,
        ready: Callable[[], bool],
        *,
        started: Callable[[], bool] | None = None,
        metrics: Callable[[str], Awaitable[tuple[str, bytes]]] | None = None,
    ) -> None:
        """`metrics` gets the Accept header, and returns a content type and the text."""
        self._checks = {"/healthz": _answers, "/readyz": ready, "/startupz": started or _answers}
        self._metrics = metrics
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system chooses for 0. Raises ConfigError."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_REQUEST_LENGTH)
        except OSError as error:
            raise ConfigError(f"--health {host}:{port}: {error.strerror or error}") from None
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer(request))
                await writer.drain()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, RuntimeError):
            pass  # a malformed request or a closed connection (RuntimeError: uvloop) gets no answer
        finally:
            writer.close()

    async def _answer(self, request: bytes) -> bytes:
        words = request.split(b" ", 2)
        path = words[1].split(b"?")[0].decode("latin-1") if len(words) == 3 else ""
        check, metrics = self._checks.get(path), self._metrics if path == "/metrics" else None
        if check is None and metrics is None:
            return _response("404 Not Found", f"there are {', '.join([*self._checks, '/metrics'])}\n".encode())
        if words[0] not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", b"only GET\n")
        if metrics is not None:
            kind, text = await metrics(_accept(request))
            return _response("200 OK", text, kind)
        assert check is not None
        return _response("200 OK", b"ok\n") if check() else _response("503 Service Unavailable", b"not ok\n")


def _answers() -> bool:
    return True


def _accept(request: bytes) -> str:
    found = re.search(rb"\r\naccept:([^\r]*)", request, re.IGNORECASE)
    return "" if found is None else found[1].decode("latin-1")


def _response(status: str, text: bytes, kind: str = "text/plain") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    return head.encode() + text
