"""What supervisor and runner say to each other: JSON lines over a socket pair. Its end is news too."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.outcome import Settlement
from windlass.core.retry import StoredPolicy


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The runner has loaded the app."""

    store: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    retries: dict[str, StoredPolicy] = {}
    """By type: for jobs of a runner that hangs and can no longer decide for itself."""
    blobs: str | None = None
    """Where large payloads and results are kept, for whoever collects them."""


class Problem(msgspec.Struct, frozen=True, tag=True):
    """The runner cannot start; no use in trying again."""

    text: str


class Lapsed(msgspec.Struct, frozen=True, tag=True):
    """The runner found that its lease is gone."""

    runner: str


class Overdue(msgspec.Struct, frozen=True, tag=True):
    """A handler will not end: the runner will, and then this becomes of its job."""

    settlement: Settlement
    job_type: str


class Bye(msgspec.Struct, frozen=True, tag=True):
    """The runner has done all that it had to, and ends."""


class Go(msgspec.Struct, frozen=True, tag=True):
    """The runner has a lease under this id, its first or a new one: claim."""

    runner: str
    lease: int
    """Its number in the table."""


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Stop to claim, give running jobs so much time, hand back the rest, end."""

    grace: Micros


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Somebody wants this attempt stopped."""

    id: JobId
    attempt: int


class Look(msgspec.Struct, frozen=True, tag=True):
    """There may be work: a hint that only the supervisor has heard."""


FromRunner = Hello | Problem | Lapsed | Overdue | Bye
FromSupervisor = Go | Stop | Cancel | Look

LONGEST_MESSAGE = 2**24
"""An app may know thousands of types."""

_from_runner = msgspec.json.Decoder(FromRunner)
_from_supervisor = msgspec.json.Decoder(FromSupervisor)
_encode = msgspec.json.Encoder().encode


class Link:
    """One end of the line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> "Link":
        """A link over one end of a socket pair."""
        return cls(*await asyncio.open_connection(sock=end, limit=LONGEST_MESSAGE))

    def say(self, message: FromRunner | FromSupervisor) -> None:
        """Send; a closed line is noticed by who listens, not by who speaks."""
        if not self._writer.is_closing():
            self._writer.write(_encode(message) + b"\n")

    async def from_runner(self) -> AsyncIterator[FromRunner]:
        """What the runner says, until it is gone."""
        async for line in self._lines():
            yield _from_runner.decode(line)

    async def from_supervisor(self) -> AsyncIterator[FromSupervisor]:
        """What the supervisor says, until it is gone."""
        async for line in self._lines():
            yield _from_supervisor.decode(line)

    async def _lines(self) -> AsyncIterator[bytes]:
        while True:
            try:
                line = await self._reader.readline()
            except ConnectionError:
                return
            if not line.endswith(b"\n"):
                return
            yield line

    async def drain(self) -> None:
        """Until all that was said is on its way."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
