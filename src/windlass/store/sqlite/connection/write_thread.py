"""Group commit: all waiting writes go into one transaction, with a savepoint each, and one flush to disk.

Groups grow with the load; no write waits for a group to fill.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from windlass.errors import StoreUnavailable, WindlassError
from windlass.store.sqlite.connection.base import Connection, DriverError, to_store_error
from windlass.store.sqlite.connection.db_thread import DbThread
from windlass.store.sqlite.connection.requests import Request
from windlass.store.sqlite.db import Db

X = TypeVar("X")
Y = TypeVar("Y")

SLOW_TRANSACTION_SECONDS = 0.25
"""After a longer transaction, GIL contention is measured before the next one, which costs a millisecond."""
GIL_WAIT_SECONDS = 0.05
"""A longer wait for the GIL is contention."""
MAX_GIL_PAUSE_SECONDS = 5.0
"""Then the write proceeds in spite of contention: outcomes must not wait for ever."""


class WriteOrder(Protocol):
    """Which process writes next."""

    def take(self) -> None:
        """Wait for the turn of this process to write."""

    def try_take(self) -> bool:
        """Take the turn if it is free now."""

    def leave(self) -> None:
        """Give up the turn."""


class Combinable(Generic[X, Y]):
    """A verb with one answer per item; calls of it that wait at the same time run as one call."""

    __slots__ = ("_open", "items", "verb")

    def __init__(
        self, verb: Callable[[Db, Sequence[X]], list[Y]], items: Sequence[X], open_: Callable[[Connection], Db]
    ) -> None:
        self.verb = verb
        self.items = items
        self._open = open_

    def __call__(self, connection: Connection) -> list[Y]:
        """Run the verb for the caller's items alone."""
        return self.verb(self._open(connection), self.items)

    def run_combined(self, connection: Connection, requests: Sequence[Request[Any]]) -> None:
        """Run the verb once for the items of all requests; each request gets the answers to its own."""
        items = [item for request in requests for item in request.work.items]  # type: ignore[attr-defined]
        answers = iter(self.verb(self._open(connection), items))
        for request in requests:
            request.result = list(islice(answers, len(request.work.items)))  # type: ignore[attr-defined]


def checkpoint(connection: Connection) -> int:
    """Copy the log into the file; returns how many pages the log had.

    Runs outside of a transaction and within the write turn: some versions of SQLite can damage a file that another
    connection writes meanwhile.
    """
    return int(connection.rows("PRAGMA wal_checkpoint(PASSIVE)")[0][1])


def _combined(group: Sequence[Request[Any]]) -> Iterator[list[Request[Any]]]:
    """Split the group, in its order, into runs of requests that can be combined."""
    for _, alike in groupby(group, key=_verb):
        yield list(alike)


def _verb(request: Request[Any]) -> object:
    return request.work.verb if isinstance(request.work, Combinable) else request


class GilContention:
    """Detects code in this process that holds the GIL for long, such as a handler in a C function.

    Each statement waits for the GIL; inside a transaction every other process would wait too, because a file has one
    writer at a time. So this process waits for the contention to end before it takes the write turn.
    """

    def __init__(self) -> None:
        self.suspected = False

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Suspect contention if this transaction takes long."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.suspected = time.monotonic() - begun > SLOW_TRANSACTION_SECONDS

    def wait(self) -> None:
        """Wait while there is contention; returns at once unless it is suspected."""
        end = time.monotonic() + MAX_GIL_PAUSE_SECONDS
        while self.suspected and (begun := time.monotonic()) < end:
            time.sleep(0.001)  # long enough for another thread to take the GIL
            self.suspected = time.monotonic() - begun > GIL_WAIT_SECONDS


class WriteThread(DbThread):
    """The thread for writes: each group takes one turn, one transaction and one flush."""

    def __init__(self, path: Path, opener: Callable[[], Connection], turn: WriteOrder) -> None:
        self._turn = turn
        self._gil = GilContention()
        super().__init__("writer", path, opener)

    def _do(self, group: list[Request[Any]]) -> None:
        self._gil.wait()
        try:
            self._turn.take()
        except Exception as error:
            self._abandon(group, error)
            return
        try:
            if writes := [request for request in group if request.work is not checkpoint]:
                self._transact(writes)
            for request in group:
                if request.work is checkpoint:
                    self._checkpoint(request)
        finally:
            self._turn.leave()

    def _checkpoint(self, request: Request[Any]) -> None:
        try:
            connection = self._connected()
            connection.reset()
            request.result = checkpoint(connection)
        except DriverError as error:
            request.error = to_store_error(error, self._path)
        except Exception as error:
            request.error = error

    def _try_now(self, request: Request[Any]) -> bool:
        connection = self._connection
        if connection is None or connection.in_transaction or self._gil.suspected or connection.was_replaced():
            return False
        if request.work is checkpoint:
            return False  # a checkpoint cannot run in a transaction
        try:
            if not self._turn.try_take() or not connection.try_begin():
                return False
            self._run_and_commit(connection, [request])
        finally:
            self._turn.leave()
        return True

    def _transact(self, group: list[Request[Any]]) -> None:
        with self._gil.measure():
            try:
                connection = self._connected()
                connection.reset()
                connection.run("BEGIN IMMEDIATE")
            except DriverError as error:
                self._abandon(group, to_store_error(error, self._path))
            except Exception as error:
                self._abandon(group, error)
            else:
                self._run_and_commit(connection, group)

    def _run_and_commit(self, connection: Connection, group: list[Request[Any]]) -> None:
        """Run the requests in the transaction that was begun, and commit."""
        committing = False
        try:
            # Marked as started only now, so that requests withdrawn while we waited for the turn are not run.
            wanted = list(filter(self._start, group))
            if len(wanted) == 1:
                self._run_one(connection, wanted[0])
            else:
                self._run_all(connection, wanted)
            committing = True
            connection.run("COMMIT")
            if connection.was_replaced():
                self._disconnect()
                raise StoreUnavailable(f"{self._path} was deleted or replaced during a write", maybe_done=True)
        except DriverError as error:
            self._abandon(group, to_store_error(error, self._path, maybe_done=committing))
        except Exception as error:
            self._abandon(group, error)

    def _connected(self) -> Connection:
        # A reader just reads the new file. A writer gets one error first, and its next try writes the new file.
        if self._connection is not None and self._connection.was_replaced():
            self._disconnect()
            raise StoreUnavailable(f"{self._path} was deleted or replaced while it was open")
        return super()._connected()

    def _run_one(self, connection: Connection, request: Request[Any]) -> None:
        """Run a request that is alone in its transaction, and so needs no savepoint."""
        request.result = request.work(connection)

    def _run_all(self, connection: Connection, group: list[Request[Any]]) -> None:
        for alike in _combined(group):
            if len(alike) == 1 or not self._run_combined(connection, alike):
                for request in alike:
                    self._run_apart(connection, request)

    def _run_apart(self, connection: Connection, request: Request[Any]) -> None:
        """Run one of several requests in a savepoint, so that its failure does not undo the others."""
        connection.run("SAVEPOINT request")
        try:
            request.result = request.work(connection)
        except Exception as error:
            # A full disk or a failed read ends the whole transaction.
            if not connection.in_transaction:
                raise
            connection.run("ROLLBACK TO request")
            request.error = to_store_error(error, self._path) if isinstance(error, DriverError) else error
        connection.run("RELEASE request")

    def _run_combined(self, connection: Connection, alike: list[Request[Any]]) -> bool:
        """Run the requests as one call; returns False if it failed and was rolled back. The caller then runs them
        apart, which shows which of them fails."""
        work = alike[0].work
        assert isinstance(work, Combinable)
        connection.run("SAVEPOINT combined")
        try:
            work.run_combined(connection, alike)
        except Exception:
            if not connection.in_transaction:
                raise
            connection.run("ROLLBACK TO combined")
            connection.run("RELEASE combined")
            return False
        connection.run("RELEASE combined")
        return True

    def _abandon(self, group: list[Request[Any]], error: Exception) -> None:
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.run("ROLLBACK")
        except DriverError:
            self._disconnect()
        for request in group:
            request.error = request.error if isinstance(request.error, WindlassError) else error
