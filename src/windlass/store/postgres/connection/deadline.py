"""Deadlines: a call that is too late is cancelled on the server, whose answer says whether it was done."""

import asyncio

from windlass.store.drive import running_loop
from windlass.store.postgres.connection.session import CANCEL_SECONDS, Session

SLACK_SECONDS = 1.0
"""On top of the time of a cancel request."""


class Call:
    """The deadline of one call."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.limit = asyncio.timeout(None)
        self.doubtful = False
        self._session: Session | None = None
        self._last = until
        # One timer for both ends: setting and moving a timer of the limit costs more than the rest of a call.
        self._timer = asyncio.get_running_loop().call_at(until, self._expire)

    def watch(self, session: Session, seconds: float | None = None) -> None:
        """From now on the deadline, at most this many seconds away, cancels on the server.

        The call itself is aborted only if the server does not answer the cancel request either.
        """
        self._session = session
        if seconds is not None:
            self._move(min(self._last, asyncio.get_running_loop().time() + seconds))

    def unwatch(self) -> None:
        """From now on the deadline aborts the call."""
        self._session = None
        # Without a loop: the call is closed by a loop that has just stopped.
        if self.until != self._last and running_loop() is not None:
            self._move(self._last)
        if self.limit.when() is not None and not self.limit.expired() and running_loop() is not None:
            self.limit.reschedule(self.until)

    def end(self) -> None:
        """The call has ended."""
        self._timer.cancel()

    def _move(self, until: float) -> None:
        self.until = until
        self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(until, self._expire)

    def _expire(self) -> None:
        if self.limit.expired():
            return
        if self._session is None:
            self.limit.reschedule(self.until)
        else:
            self.limit.reschedule(self.until + CANCEL_SECONDS + SLACK_SECONDS)
            self._session.cancel_statement()
