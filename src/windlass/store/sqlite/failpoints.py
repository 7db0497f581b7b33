"""Failpoints: named places around every commit, at which a test lets this process die or its disk fail.

    WINDLASS_FAILPOINTS="settle.after_commit=kill,claim.before_commit=raise"

A point is the name of a verb and a side of its commit. `kill` ends the process as the kernel would. `raise` is an
error of the driver while the verb works: it is rolled back, and that is certain. `cut` is an error of the commit
itself: nobody knows, and before the commit nothing was done, after it everything. Each fires once in a process, or
once at all if WINDLASS_FAILPOINTS_ONCE names a folder to keep that in. For our own tests only; see tests/torture.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

from windlass.errors import ConfigError
from windlass.store.sqlite.connection import Connection, Values
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.trouble import DriverError, Trouble

T = TypeVar("T")

SIDES = ("before_commit", "after_commit")
ACTIONS = ("kill", "raise", "cut")


def armed() -> "Failpoints | None":
    """What the environment asks for; None, and nothing to pay, if it asks for nothing."""
    text = os.environ.get("WINDLASS_FAILPOINTS")
    return Failpoints(_parse(text), os.environ.get("WINDLASS_FAILPOINTS_ONCE")) if text else None


def _parse(text: str) -> dict[str, str]:
    wanted = dict(part.strip().partition("=")[::2] for part in text.split(","))
    for point, action in wanted.items():
        if point.partition(".")[2] not in SIDES or action not in ACTIONS:
            raise ConfigError(
                f"WINDLASS_FAILPOINTS: {point}={action} is not verb.{'|'.join(SIDES)}={'|'.join(ACTIONS)}"
            )
    return wanted


class Failpoints:
    """The points of one pair of lanes: which are armed, and which verbs are in the open transaction."""

    def __init__(self, wanted: dict[str, str], once: str | None) -> None:
        self._wanted = wanted
        self._once = once
        self._verbs: list[str] = []

    def named(self, work: Callable[[Db], T]) -> Callable[[Db], T]:
        """The same work, known by the verb that asks for it."""
        verb = work.__qualname__.partition(".<locals>")[0].rpartition(".")[2]

        def run(db: Db) -> T:
            answer = work(db)
            self._reach(f"{verb}.before_commit", "raise")
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
            self._reach(f"{verb}.before_commit", "kill", "cut")
        done = commit()
        for verb in verbs:
            self._reach(f"{verb}.after_commit", *ACTIONS)
        return done

    def begin(self) -> None:
        """A transaction opens; what an earlier one did and took back is forgotten."""
        self._verbs = []

    def _reach(self, point: str, *actions: str) -> None:
        if self._wanted.get(point) in actions and self._is_first(point):
            self._fire(point, self._wanted.pop(point))

    def _is_first(self, point: str) -> bool:
        if self._once is None:
            return True
        try:
            os.close(os.open(Path(self._once) / point, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _fire(self, point: str, action: str) -> NoReturn:
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise DriverError(f"failpoint {point}={action}", Trouble.IO)
