"""One listener of the event stream: its buffer, and writes to its connection."""

import asyncio
import contextlib
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import msgspec
from starlette.types import Send

from windlass.server.events.event import EventFilter, frame
from windlass.server.operation import Caller

MAX_BEHIND = 512 * 1024
"""Bytes that are buffered for a listener; beyond them it is too slow."""
SEND_SECONDS = 30.0
"""A client that reads nothing for this long is disconnected."""

Recheck = Callable[[], Awaitable[Caller]]
"""Returns the caller of a stream; Refused once its token or session has ended."""


class StreamEnd(msgspec.Struct):
    """Why a stream ended: `slow`, `revoked`, `stopping` or `time`."""

    reason: str


class Listener:
    """One open stream.

    Its task sleeps while there is nothing to send. The hub writes to the connection itself as long as the write does
    not block: with a thousand listeners, waking a thousand tasks costs more than the writes.
    """

    def __init__(self, caller: Caller, wanted: EventFilter, recheck: Recheck) -> None:
        self.rights = caller.rights
        self.token = caller.id
        self.wanted = wanted
        self.recheck = recheck
        self.ended = False
        self._waiting: list[bytes] = []
        self._held: list[bytes] | None = None
        self._size = 0
        self._wake = asyncio.Event()
        self._write: Send | None = None
        self._sleeps = False
        """Whether its task waits for frames, and no write is in progress."""
        self._begun: tuple[Coroutine[Any, Any, None], Any] | None = None
        """A write of the hub that blocked, and the future that it awaits."""

    def attach(self, send: Send) -> None:
        """Let the hub write itself if the server is uvicorn, whose writes block only for a slow client."""
        home = type(getattr(send, "__self__", None))
        if home.__module__.startswith("uvicorn.protocols.http."):
            self._write = send

    def hold(self) -> None:
        """Buffer new frames until the replay is read."""
        self._held = []

    def release(self, first: bytes) -> None:
        """Send the replay, and then the frames that were buffered."""
        held, self._held = self._held or [], None
        self._waiting = [first, *held]
        self._size = 0
        self._wake.set()

    def send(self, frames: bytes) -> None:
        """Send or buffer frames; the stream of a listener that is too slow ends with the reason `slow`."""
        if self.ended:
            return
        if self._held is not None:
            self._held.append(frames)
            return
        if self._write is not None and self._sleeps and not self._waiting:
            self._write_now(self._write, frames)
            return
        self._size += len(frames)
        if self._size > MAX_BEHIND:
            self._waiting.clear()
            self.end("slow")
            return
        self._waiting.append(frames)
        self._wake.set()

    def _write_now(self, write: Send, frames: bytes) -> None:
        """Write without a task switch; a write that blocks is finished by the listener's task."""
        step: Any = write({"type": "http.response.body", "body": frames, "more_body": True})
        try:
            awaited = step.send(None)
        except StopIteration:
            return
        except OSError:
            self.end("time")
            return
        self._begun, self._sleeps = (step, awaited), False
        self._wake.set()

    def end(self, reason: str) -> None:
        """End the stream after the buffered frames."""
        if not self.ended:
            self._waiting.append(frame("stream.ended", StreamEnd(reason)))
            self.ended = True
            self._wake.set()

    async def next(self, seconds: float) -> bytes:
        """The buffered frames, waiting up to this time for some. Raises TimeoutError if the client does not read."""
        if not self._waiting and not self.ended:
            self._sleeps = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            self._sleeps = False
        if self._begun is not None:
            (step, awaited), self._begun = self._begun, None
            async with asyncio.timeout(SEND_SECONDS):
                await _resumed(step, awaited)
        frames, self._waiting, self._size = b"".join(self._waiting), [], 0
        self._wake.clear()
        return frames


@types.coroutine
def _resumed(step: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    """Resume a coroutine that was started by hand, after the future that it awaits."""
    try:
        yield awaited
    except BaseException:
        step.close()
        raise
    yield from step
