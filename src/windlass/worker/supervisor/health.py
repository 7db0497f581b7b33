"""The health port: /healthz and /readyz, for orchestrators. It answers ok or not, and nothing else."""

import asyncio
from collections.abc import Callable

from windlass.errors import ConfigError

MAX_REQUEST_LENGTH = 8192
SECONDS = 5.0


class Health:
    """A listener that answers two questions: is it alive, and does it want work."""

    def __init__(self, live: Callable[[], bool], ready: Callable[[], bool]) -> None:
        self._checks = {"/healthz": live, "/readyz": ready}
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port that was taken (the given one, unless it is 0). Raises ConfigError."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_REQUEST_LENGTH)
        except OSError as error:
            raise ConfigError(f"--health {host}:{port}: {error.strerror or error}") from None
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(request))
                await writer.drain()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, RuntimeError):
            pass  # a malformed request or a closed connection (RuntimeError: uvloop) gets no answer
        finally:
            writer.close()

    def _answer(self, request: bytes) -> bytes:
        words = request.split(b" ", 2)
        path = words[1].split(b"?")[0].decode("latin-1") if len(words) == 3 else ""
        check = self._checks.get(path)
        if check is None:
            return _response("404 Not Found", "there are /healthz and /readyz\n")
        if words[0] not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET\n")
        return _response("200 OK", "ok\n") if check() else _response("503 Service Unavailable", "not ok\n")


def _response(status: str, text: str) -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
        f"Connection: close\r\n\r\n{text}"
    ).encode()
