"""uvicorn's HTTP protocol with the limits that it lacks on the head of a request: a time and a size."""

import asyncio
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    AutoHTTPProtocol: Any
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
"""Request line and headers must be complete within this time, from the connection or their first byte on."""
MAX_HEAD = 64 * 1024
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n"
    b"Cache-Control: no-store\r\n\r\n"
)


class GuardedProtocol(AutoHTTPProtocol):  # type: ignore[misc]
    """One connection."""

    _slow: asyncio.TimerHandle | None = None
    _head = 0

    def connection_made(self, transport: Any) -> None:
        """Start the timer of the first request."""
        super().connection_made(transport)
        # asyncio does this for its own sockets only. A body that is sent after its head would wait 40 ms.
        line = transport.get_extra_info("socket")
        if line is not None and line.family in (socket.AF_INET, socket.AF_INET6):
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._head_is_complete()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head that is not complete, and start its timer."""
        if self._is_between_requests and self._head + len(data) > MAX_HEAD and b"\r\n\r\n" not in data[:MAX_HEAD]:
            self.transport.write(_TOO_LARGE)
            self.transport.close()
            return
        super().data_received(data)
        if self._is_between_requests:
            self._head += len(data)
            self._await_head()
        else:
            self._head_is_complete()

    @property
    def _is_between_requests(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _await_head(self) -> None:
        if self._slow is None and not self.transport.is_closing():
            self._slow = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _head_is_complete(self) -> None:
        self._head = 0
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None
