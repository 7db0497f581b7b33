"""Messages between supervisor and runner: JSON lines over a socket pair."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.outcome import Settlement
from windlass.core.jobs.retry import StoredPolicy
from windlass.core.moments import Micros


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The runner has loaded the app."""

    store: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    retries: dict[str, StoredPolicy] = {}
    """Retry policies by type, for settling the jobs of a runner that hangs."""
    blobs: str | None = None
    """Where large payloads and results are kept, for the coordinator's sweep."""
    undeclared: tuple[str, ...] = ()
    """Schedules that code declared earlier and the app no longer declares."""
    parameters: dict[str, tuple[str, ...]] = {}
    """Parameters by type: workers with another version of a task read them."""


class StartFailed(msgspec.Struct, frozen=True, tag=True):
    """The runner cannot start."""

    text: str
    of_store: bool = False
    """Whether the store is the cause, not the app."""


class LeaseLapsed(msgspec.Struct, frozen=True, tag=True):
    """The runner found that its lease is gone."""

    runner: str


class Overdue(msgspec.Struct, frozen=True, tag=True):
    """A handler does not end: its runner ends instead, and then this settlement of its job is written."""

    settlement: Settlement
    job_type: str


class Goodbye(msgspec.Struct, frozen=True, tag=True):
    """The runner has finished its work and ends."""


class LeaseGranted(msgspec.Struct, frozen=True, tag=True):
    """The runner has a lease under this id, its first or a new one: claim."""

    runner: str
    lease: int
    """The number of the lease in the table."""


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Stop claiming, let running jobs finish within `grace`, requeue the rest, end."""

    grace: Micros


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """The cancellation of this attempt was requested."""

    id: JobId
    attempt: int


class Hint(msgspec.Struct, frozen=True, tag=True):
    """There may be work: a hint that only the supervisor receives."""


FromRunner = Hello | StartFailed | LeaseLapsed | Overdue | Goodbye
FromSupervisor = LeaseGranted | Stop | Cancel | Hint

MAX_MESSAGE_LENGTH = 2**24
"""An app may know thousands of types."""

_from_runner = msgspec.json.Decoder(FromRunner)
_from_supervisor = msgspec.json.Decoder(FromSupervisor)
_encode = msgspec.json.Encoder().encode


class Channel:
    """One end of the socket pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> "Channel":
        """A channel over one end of a socket pair."""
        return cls(*await asyncio.open_connection(sock=end, limit=MAX_MESSAGE_LENGTH))

    def send(self, message: FromRunner | FromSupervisor) -> None:
        """Send; a closed socket is noticed by the reader, not here."""
        if not self._writer.is_closing():
            self._writer.write(_encode(message) + b"\n")

    def hint(self, message: FromSupervisor) -> None:
        """Send, unless earlier messages are still buffered: a suspended runner must not fill the supervisor's
        memory.
        """
        if not self._writer.transport.get_write_buffer_size():
            self.send(message)

    async def from_runner(self) -> AsyncIterator[FromRunner]:
        """Messages of the runner, until it closes the socket."""
        async for line in self._lines():
            yield _from_runner.decode(line)

    async def from_supervisor(self) -> AsyncIterator[FromSupervisor]:
        """Messages of the supervisor, until it closes the socket."""
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
        """Wait while the write buffer is full; small messages are sent at once."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    def close(self) -> None:
        """Close this end."""
        self._writer.close()
