"""The failpoints of this store: each verb is known by its name, and the frames of its commits are watched."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import TypeVar, cast

import asyncpg

from windlass.store.failpoints import ACTIONS, Failpoints, Named, armed
from windlass.store.postgres.session import Frame, Session

Role = TypeVar("Role")


def armed_commits() -> "WatchedCommits | None":
    """The watch that the environment asks for; None if it asks for nothing."""
    points = armed(asyncpg.InternalServerError)
    return None if points is None else WatchedCommits(points)


class WatchedCommits:
    """The points of one process, and which verb is under way in a task."""

    def __init__(self, points: Failpoints) -> None:
        self._points = points
        self._verb: ContextVar[str] = ContextVar("verb", default="")

    def named(self, role: Role) -> Role:
        """The same role, whose verbs say what they are. Tasks that they start are a part of them."""
        return cast(Role, Named(role, self._verb))

    def watched(self, frame: Frame) -> Frame:
        """The same frame, with what happens on either side of its commit."""
        return lambda session: self._watch(frame, session, self._verb.get())

    def migration(self, session: Session) -> AbstractAsyncContextManager[None]:
        """The transaction that makes the schema: no call of anybody's."""
        return self._watch(Session.transaction, session, "migrate")

    @contextlib.asynccontextmanager
    async def _watch(self, frame: Frame, session: Session, verb: str) -> AsyncIterator[None]:
        # A statement that is its own commit can only be stopped before it is sent.
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
    """What is raised here is a line that was cut at the commit: the server knows, and we never will."""
    try:
        yield
    except asyncpg.InternalServerError as fault:
        session.ending = True
        session.drop()
        raise ConnectionResetError(str(fault)) from None
