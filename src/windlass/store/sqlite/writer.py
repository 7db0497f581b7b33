"""The writer's lane is a group commit: whatever is waiting goes into one transaction, one savepoint each.

One flush to disk makes all of it durable. The batch grows by itself as the load does; nothing ever waits to fill it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from windlass.errors import StoreUnavailable, WindlassError
from windlass.store.sqlite.connection import Connection
from windlass.store.sqlite.hogs import Hogs
from windlass.store.sqlite.joint import Joint, joined
from windlass.store.sqlite.lane import Lane
from windlass.store.sqlite.request import Request
from windlass.store.sqlite.trouble import DriverError, translate


class Turns(Protocol):
    """Who writes next, among processes."""

    def take(self) -> None:
        """Wait for the turn."""

    def try_take(self) -> bool:
        """Take the turn if it is free now."""

    def leave(self) -> None:
        """Pass it on."""


class WriteLane(Lane):
    """Writes, grouped: one turn, one transaction, one flush for all that is waiting."""

    def __init__(self, path: Path, opener: Callable[[], Connection], turn: Turns) -> None:
        self._turn = turn
        self._hogs = Hogs()
        super().__init__("writer", path, opener)

    def _do(self, group: list[Request[Any]]) -> None:
        self._hogs.let_pass()
        try:
            self._turn.take()
        except Exception as error:
            self._abandon(group, error)
            return
        try:
            self._transact(group)
        finally:
            self._turn.leave()

    def _do_at_once(self, request: Request[Any]) -> bool:
        connection = self._connection
        if connection is None or connection.in_transaction or self._hogs.suspected or connection.has_moved():
            return False
        try:
            if not self._turn.try_take() or not connection.try_begin():
                return False
            self._finish(connection, [request])
        finally:
            self._turn.leave()
        return True

    def _transact(self, group: list[Request[Any]]) -> None:
        with self._hogs.noticed():
            try:
                connection = self._connected()
                connection.tidy()
                connection.run("BEGIN IMMEDIATE")
            except DriverError as error:
                self._abandon(group, translate(error, self._path))
            except Exception as error:
                self._abandon(group, error)
            else:
                self._finish(connection, group)

    def _finish(self, connection: Connection, group: list[Request[Any]]) -> None:
        """The rest of a transaction that has begun."""
        committing = False
        try:
            # Only now: whoever gave up while we waited for the turn is told that nothing was done.
            wanted = list(filter(self._start, group))
            if len(wanted) == 1:
                self._attempt_one(connection, wanted[0])
            else:
                self._attempt_all(connection, wanted)
            committing = True
            connection.run("COMMIT")
        except DriverError as error:
            self._abandon(group, translate(error, self._path, maybe_done=committing))
        except Exception as error:
            self._abandon(group, error)

    def _connected(self) -> Connection:
        # A reader just looks into the new file. Who writes is told once; who tries again means the new one.
        if self._connection is not None and self._connection.has_moved():
            self._shut()
            raise StoreUnavailable(f"{self._path} was deleted or replaced while it was open")
        return super()._connected()

    def _attempt_one(self, connection: Connection, request: Request[Any]) -> None:
        """Alone in its transaction, it needs no savepoint: if it fails, nothing stands."""
        request.result = request.work(connection)

    def _attempt_all(self, connection: Connection, group: list[Request[Any]]) -> None:
        for alike in joined(group):
            if len(alike) == 1 or not self._attempt_joint(connection, alike):
                for request in alike:
                    self._attempt_apart(connection, request)

    def _attempt_apart(self, connection: Connection, request: Request[Any]) -> None:
        """One of several: if it fails, the others stand."""
        connection.run("SAVEPOINT request")
        try:
            request.result = request.work(connection)
        except Exception as error:
            # A full disk or a failed read ends the whole transaction by itself; then nobody's work stands.
            if not connection.in_transaction:
                raise
            connection.run("ROLLBACK TO request")
            request.error = translate(error, self._path) if isinstance(error, DriverError) else error
        connection.run("RELEASE request")

    def _attempt_joint(self, connection: Connection, alike: list[Request[Any]]) -> bool:
        """All of them as one: False if that failed, and nothing of it stands; then it shows whose fault it was."""
        work = alike[0].work
        assert isinstance(work, Joint)
        connection.run("SAVEPOINT joint")
        try:
            work.together(connection, alike)
        except Exception:
            if not connection.in_transaction:
                raise
            connection.run("ROLLBACK TO joint")
            connection.run("RELEASE joint")
            return False
        connection.run("RELEASE joint")
        return True

    def _abandon(self, group: list[Request[Any]], error: Exception) -> None:
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.run("ROLLBACK")
        except DriverError:
            self._shut()
        for request in group:
            request.error = request.error if isinstance(request.error, WindlassError) else error
