"""Connections for callers without an event loop: each call takes one, and waits itself."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from redis.connection import ConnectionInterface
from redis.exceptions import ResponseError

from windlass.store.redis.connection.driver import Word, packed

TRUSTED_SECONDS = 0.5
"""Seconds after which an idle connection is checked before its use: the server may have closed it."""


class BlockingConnections:
    """Idle connections, the last used first; a process that was forked begins with none."""

    def __init__(self, make: Callable[[], ConnectionInterface]) -> None:
        self._make = make
        self._idle: list[tuple[ConnectionInterface, float]] = []
        self._process = os.getpid()

    def ask(self, commands: Sequence[tuple[Word, ...]]) -> list[Any]:
        """Several commands in one write: an answer or an error of the server for each."""
        connection = self._take()
        try:
            connection.send_packed_command([packed(commands)], check_health=False)
            answers = [_answer(connection) for _ in commands]
        except BaseException:
            connection.disconnect()
            raise
        self._idle.append((connection, time.monotonic()))
        return answers

    def close(self) -> None:
        """Hang up."""
        while self._idle:
            self._idle.pop()[0].disconnect()

    def _take(self) -> ConnectionInterface:
        if self._process != os.getpid():
            # They are the parent's: not even to be closed.
            self._idle, self._process = [], os.getpid()
        try:
            connection, used = self._idle.pop()
        except IndexError:
            connection = self._make()
            connection.connect()
            return connection
        if time.monotonic() - used > TRUSTED_SECONDS and _is_stale(connection):
            connection.disconnect()
            connection.connect()
        return connection


def _answer(connection: ConnectionInterface) -> Any:
    try:
        return connection.read_response()
    except ResponseError as error:
        return error


def _is_stale(connection: ConnectionInterface) -> bool:
    """Whether it was closed, or has an unexpected reply."""
    try:
        return bool(connection.can_read())
    except Exception:
        return True
