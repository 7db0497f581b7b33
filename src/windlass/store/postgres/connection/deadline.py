"""Deadlines: a call that is too late is cancelled on the server, whose answer tells whether it was done."""

import asyncio

from windlass.store.drive import running_loop
from windlass.store.postgres.connection.session import CANCEL_SECONDS, Session

SLACK_SECONDS = 1.0
"""On top of the time of a cancel request."""


class Call:
    """The deadline of one call."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.limit = asyncio.timeout_at(until)
        self.doubtful = False

    def watch(self, session: Session) -> asyncio.TimerHandle:
        """From now on the deadline cancels on the server.

        The call itself is aborted only if the server does not answer that either.
        """
        self.limit.reschedule(self.until + CANCEL_SECONDS + SLACK_SECONDS)
        return asyncio.get_running_loop().call_at(self.until, session.cancel_statement)

    def unwatch(self) -> None:
        """From now on the deadline aborts the call."""
        # Without a loop: the call is closed by a loop that has just stopped.
        if not self.limit.expired() and running_loop() is not None:
            self.limit.reschedule(self.until)
