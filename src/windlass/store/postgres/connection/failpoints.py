"""Failpoints of this store, before and after the commit of each verb."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager

import asyncpg

from windlass.store.failpoints import ACTIONS, Failpoints, armed
from windlass.store.postgres.connection.session import Frame, Session


def armed_commits() -> "WatchedCommits | None":
    """The failpoints that the environment asks for; None if it asks for none."""
    points = armed(asyncpg.InternalServerError)
    return None if points is None else WatchedCommits(points)


class WatchedCommits:
    """The failpoints of one process; knows which verb each task runs."""

    def __init__(self, points: Failpoints) -> None:
        self._points = points
        self._verb = points.verb
        self.named = points.named

    def watched(self, frame: Frame) -> Frame:
        """The same frame, with failpoints before and after its commit."""
        return lambda session: self._watch(frame, session, self._verb.get())

    def migration(self, session: Session) -> AbstractAsyncContextManager[None]:
        """The transaction of a migration."""
        return self._watch(Session.transaction, session, "migrate")

    @contextlib.asynccontextmanager
    async def _watch(self, frame: Frame, session: Session, verb: str) -> AsyncIterator[None]:
        # A statement that is its own transaction can be stopped only before it is sent.
        alone = frame is not Session.transaction and not session.pooled
        if alone:
            self._before(verb, session)
        async with frame(session):
            yield
            if not alone:
                self._before(verb, session)
        with _cut_off(session):
            self._points.reach(f"{verb}.after_commit", *ACTIONS)

    def _before(self, verb: str, session: Session) -> None:
        point = f"{verb}.before_commit"
        self._points.reach(point, "raise")
        with _cut_off(session):
            self._points.reach(point, "kill", "cut")


@contextlib.contextmanager
def _cut_off(session: Session) -> Iterator[None]:
    """Turn a fault into a connection that is lost during the commit: its outcome is unknown."""
    try:
        yield
    except asyncpg.InternalServerError as fault:
        session.ending = True
        session.drop()
        raise ConnectionResetError(str(fault)) from None
