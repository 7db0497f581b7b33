"""A session of the loop's pool for threads without a loop: one statement, sent and answered in the caller's thread.

The driver opens the connection and prepares the statement; then the event loop stops reading from it. A thread that
finds the session free sends the statement's values, and waits for the answer on the same socket: it needs no task and
no other thread (docs/decisions/0088-a-loop-of-its-own.md).
"""

import asyncio
import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from windlass.native import lock, poll
from windlass.store.drive import running_loop
from windlass.store.postgres.connection.db import Statement
from windlass.store.postgres.connection.pool import Pool
from windlass.store.postgres.connection.session import CANCEL_SECONDS, STANDBY_WAIT, Session, socket_of
from windlass.store.postgres.connection.trouble import READ_ONLY

LENT_SECONDS = 10.0
"""After this time the session returns to the pool, which discards old plans and closes idle sessions."""
SLACK_SECONDS = 1.0
"""How long to wait for the answer beyond the time of a cancel request."""
MIN_WAIT = 0.001
"""Seconds; a negative time would wait for ever."""
MAX_WAIT = 24 * 86_400.0
"""Seconds; a poll takes no more than 2³¹ milliseconds, and would refuse a longer time when the statement is sent."""
_READ_SIZE = 16 * 1024
_TRUTHS = {True: "t", False: "f"}
_NULL = (-1).to_bytes(4, "big", signed=True)
_READY = b"Z\0\0\0\5I"
_ONE_ROW = b"2\0\0\0\4C\0\0\0\17INSERT 0 1\0" + _READY
"""The usual reply: bound, one row inserted, ready and not in a transaction."""
_EXECUTE_AND_SYNC = b"E" + (9).to_bytes(4, "big") + bytes(5) + b"S" + (4).to_bytes(4, "big")


class Reply(msgspec.Struct, frozen=True):
    """The server's answer."""

    rows: int = 0
    error: str = ""
    """The SQLSTATE of an error: nothing was done."""
    certain: bool = True
    """False: the server ended the session, or a commit did not wait for its standby."""
    cancelled: bool = False
    """Whether the statement took too long, so that a cancel was requested."""


_STORED = Reply(rows=1)


class BlockingSession:
    """One prepared statement on one connection, for one thread at a time."""

    def __init__(self, session: Session, pool: Pool, prepared: Any, statement: Statement) -> None:
        """Runs on the event loop of the pool that has lent the session."""
        self.loop = asyncio.get_running_loop()
        self._session = session
        self._pool = pool
        self._prepared = prepared  # the driver closes a statement that is not referred to
        self.names = statement.names
        self._head = b"\0" + prepared.get_name().encode() + bytes(3) + len(statement.names).to_bytes(2, "big")
        self._pid = os.getpid()
        self._used = lock()
        self._ending = self._broken = self._ended = False
        session.connection._transport.pause_reading()
        self._line = socket.socket(fileno=os.dup(socket_of(session.connection).fileno()))
        self._line.setblocking(False)  # a socket with a timeout polls before each call
        self._input = poll()
        self._input.register(self._line.fileno(), select.POLLIN)
        self._end_timer = self.loop.call_later(LENT_SECONDS, self.end)

    @property
    def usable(self) -> bool:
        """Whether the session belongs to this process, is not about to end, and its pool is open."""
        return not self._ending and self._pid == os.getpid() and not self._pool.closed

    def ask(self, values: Sequence[Any], seconds: float) -> Reply | None:
        """Run the statement; returns None if nothing was sent, because the session is in use or closed.

        Raises OSError if the outcome is unknown.
        """
        message = self._message(values)
        if not self._used.acquire(blocking=False):
            return None
        try:
            if not self.usable:
                return None
            if self._input.poll(0):
                self._ending = True  # the server closed the connection, or sent a notice: the loop reads it
                return None
            return self._ask(message, min(seconds, MAX_WAIT))
        except BaseException:
            # After an interrupt too, the answer may still come, and the driver must not read it.
            self._ending = self._broken = True
            raise
        finally:
            self._used.release()
            if self._ending:
                self._on_loop(self.end)

    def _on_loop(self, call: Callable[[], None]) -> None:
        try:
            self.loop.call_soon_threadsafe(call)
        except RuntimeError:
            call()  # the loop is closed: nothing else uses the session

    def end(self) -> None:
        """Return the session to the pool, now or after the call in flight. Runs on the loop."""
        self._ending = True
        if not self._used.acquire(blocking=False):
            return  # the thread of the call in flight ends it
        self._ended = True  # the lock is never released, so that no thread uses the session again
        unread = bool(self._input.poll(0))
        self._line.close()
        if not self.loop.is_closed():
            self._end_timer.cancel()
            if self._broken or unread:
                self._session.drop()
            elif not self._session.connection.is_closed():
                self._session.connection._transport.resume_reading()
        self._pool.give(self._session)

    def close(self) -> None:
        """Close the session, because its loop may end. May be called from any thread."""
        if running_loop() is self.loop:
            self._close()
        else:
            self._on_loop(self._close)

    def _close(self) -> None:
        self.end()
        if not self._ended and not self.loop.is_closed():
            self._session.drop()  # the call in flight keeps its own descriptor

    def _message(self, values: Sequence[Any]) -> bytes:
        """The protocol's messages Bind, with all values as text, Execute, and Sync."""
        parts = [self._head]
        for value in values:
            if value is None:
                parts.append(_NULL)
                continue
            text = value if isinstance(value, str) else _TRUTHS[value] if isinstance(value, bool) else str(value)
            data = text.encode()
            parts += (len(data).to_bytes(4, "big"), data)
        parts.append(b"\0\0")
        size = sum(map(len, parts)) + 4
        return b"".join((b"B", size.to_bytes(4, "big"), *parts, _EXECUTE_AND_SYNC))

    def _ask(self, message: bytes, seconds: float) -> Reply:
        until, cancelled, data = time.monotonic() + seconds, False, b""
        self._send(message, seconds)
        while True:
            try:
                data += self._receive(until)
            except TimeoutError:
                if cancelled:
                    raise
                cancelled = self._ending = True
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    self.loop.call_soon_threadsafe(self._session.cancel_statement)
                until = time.monotonic() + CANCEL_SECONDS + SLACK_SECONDS
            if (reply := _reply(data, cancelled=cancelled)) is not None:
                self._note(reply, more=not data.endswith(_READY))
                return reply

    def _send(self, message: bytes, seconds: float) -> None:
        """Nearly always all of it fits into the socket's buffer, which is empty."""
        try:
            sent = self._line.send(message)
        except BlockingIOError:
            sent = 0
        if sent < len(message):
            self._line.settimeout(seconds)
            self._line.sendall(message[sent:])
            self._line.setblocking(False)

    def _receive(self, until: float) -> bytes:
        """The next part of the reply, of which all parts have one deadline."""
        if not self._input.poll(max(until - time.monotonic(), MIN_WAIT) * 1000):
            raise TimeoutError
        part = self._line.recv(_READ_SIZE)
        if not part:
            raise ConnectionResetError("the server closed the connection")
        return part

    def _note(self, reply: Reply, *, more: bool) -> None:
        """End the session after an error, for the loop to check it; a lost or read-only one is dropped.

        So is one of which `more` was read, perhaps a part of a message: the driver must not read the rest alone.
        """
        self._broken = more or not reply.certain or reply.error == READ_ONLY
        if reply.error or self._broken:
            self._ending = True


def _reply(data: bytes, *, cancelled: bool) -> Reply | None:
    """The reply; None if it is not complete, which it is with ReadyForQuery or an error that ends the session."""
    if data == _ONE_ROW and not cancelled:
        return _STORED
    rows, error, certain = 0, "", True
    for kind, body in _messages(data):
        if kind == b"Z":
            return Reply(rows, error, certain, cancelled)
        if kind == b"C":
            rows = int(body[:-1].rpartition(b" ")[2])
        elif kind == b"E":
            fields = _fields(body)
            error = fields[b"C"].decode()
            if fields.get(b"V") != b"ERROR":
                return Reply(error=error, certain=False, cancelled=cancelled)
        elif kind == b"N" and _fields(body).get(b"R") == STANDBY_WAIT.encode():
            certain = False
    return None


def _messages(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 5 <= len(data):
        end = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
        if end > len(data):
            return
        yield data[at : at + 1], data[at + 5 : end]
        at = end


def _fields(body: bytes) -> dict[bytes, bytes]:
    return {field[:1]: field[1:] for field in body.split(b"\0") if field}
