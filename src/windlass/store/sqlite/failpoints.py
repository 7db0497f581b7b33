"""The failpoints of this store: its connection is watched, and the verbs of a group commit are known by name."""

from collections.abc import Callable
from typing import TypeVar

from windlass.store.failpoints import ACTIONS, Failpoints, armed, verb_of
from windlass.store.sqlite.connection import Connection, Values
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.trouble import DriverError, Trouble

T = TypeVar("T")


def armed_commits() -> "WatchedCommits | None":
    """The watch that the environment asks for; None if it asks for nothing."""
    points = armed(lambda message: DriverError(message, Trouble.IO))
    return None if points is None else WatchedCommits(points)


class WatchedCommits:
    """The points of one pair of lanes, and which verbs are in the open transaction."""

    def __init__(self, points: Failpoints) -> None:
        self._points = points
        self._verbs: list[str] = []

    def named(self, work: Callable[[Db], T]) -> Callable[[Db], T]:
        """The same work, known by the verb that asks for it."""
        verb = verb_of(work)

        def run(db: Db) -> T:
            answer = work(db)
            self._points.reach(f"{verb}.before_commit", "raise")
            self._verbs.append(verb)
            return answer

        return run

    def watched(self, connection: Connection) -> Connection:
        """The same connection, of whichever library, with its commits watched."""
        run = connection.run

        def watched(text: str, values: Values = ()) -> int:
            if text == "COMMIT":
                return self.commit(lambda: run(text, values))
            if text == "BEGIN IMMEDIATE":
                self.begin()
            return run(text, values)

        connection.run = watched  # type: ignore[method-assign]
        return connection

    def commit(self, commit: Callable[[], int]) -> int:
        """The commit, and what happens on either side of it. One without a verb makes the schema."""
        verbs, self._verbs = self._verbs or ["migrate"], []
        for verb in verbs:
            self._points.reach(f"{verb}.before_commit", "kill", "cut")
        done = commit()
        for verb in verbs:
            self._points.reach(f"{verb}.after_commit", *ACTIONS)
        return done

    def begin(self) -> None:
        """A transaction opens; what an earlier one did and took back is forgotten."""
        self._verbs = []
