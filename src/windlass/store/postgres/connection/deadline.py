"""Deadlines: a late call is cancelled on the server, whose answer says whether it took effect."""

import asyncio

from windlass.store.drive import running_loop
from windlass.store.postgres.connection.session import CANCEL_SECONDS, Session

SLACK_SECONDS = 1.0
"""How long to wait for the answer beyond the time of a cancel request."""


class Call:
    """The deadline of one call."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.limit = asyncio.timeout(None)
        self.doubtful = False
        self._session: Session | None = None
        self._last = until
        # One timer of our own: setting and moving the timer of `limit` would cost more than the rest of a call.
        self._timer = asyncio.get_running_loop().call_at(until, self._expire)

    def watch(self, session: Session, seconds: float | None = None) -> None:
        """From now on the deadline, at most this many seconds away, cancels the session's statement on the server.

        The call itself is aborted only if no answer follows the cancel request.
        """
        self._session = session
        if seconds is not None:
            self._move(min(self._last, asyncio.get_running_loop().time() + seconds))

    def unwatch(self) -> None:
        """From now on the deadline aborts the call."""
        self._session = None
        # There is no loop if the call ends because its loop has just stopped.
        if self.until != self._last and running_loop() is not None:
            self._move(self._last)
        if self.limit.when() is not None and not self.limit.expired() and running_loop() is not None:
            self.limit.reschedule(self.until)

    def end(self) -> None:
        """Stop the timer: the call has ended."""
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
