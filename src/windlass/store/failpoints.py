"""Failpoints: named points around every commit at which a test kills this process or fails the driver.

    WINDLASS_FAILPOINTS="settle.after_commit=kill,claim.before_commit=raise"

A point is a verb and a side of its commit. `kill` sends SIGKILL. `raise` is a driver error during the verb, which is
rolled back. `cut` is an error of the commit itself, with an unknown outcome: before the commit nothing is done, after
it everything. Each point fires once per process; if WINDLASS_FAILPOINTS_ONCE names a folder, once for all processes
that share it. For our own tests only; see tests/torture.
"""

import os
import signal
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from windlass.errors import ConfigError
from windlass.store.wrapped import Call, WrappedRole

Role = TypeVar("Role")
SIDES = ("before_commit", "after_commit")
ACTIONS = ("kill", "raise", "cut")


def armed(error: Callable[[str], Exception]) -> "Failpoints | None":
    """The failpoints of the environment, or None; `error` makes the store's kind of failure."""
    text = os.environ.get("WINDLASS_FAILPOINTS")
    return Failpoints(_parse(text), os.environ.get("WINDLASS_FAILPOINTS_ONCE"), error) if text else None


def _parse(text: str) -> dict[str, str]:
    wanted = dict(part.strip().partition("=")[::2] for part in text.split(","))
    for point, action in wanted.items():
        if point.partition(".")[2] not in SIDES or action not in ACTIONS:
            raise ConfigError(
                f"WINDLASS_FAILPOINTS: {point}={action} is not verb.{'|'.join(SIDES)}={'|'.join(ACTIONS)}"
            )
    return wanted


class Failpoints:
    """The failpoints that are armed in this process."""

    def __init__(self, wanted: dict[str, str], once: str | None, error: Callable[[str], Exception]) -> None:
        self._wanted = wanted
        self._once = once
        self._error = error
        self.verb: ContextVar[str] = ContextVar("verb", default="")
        """The verb that a task is in."""

    def named(self, role: Role) -> Role:
        """The same role, whose calls set the verb; tasks that they start inherit it."""

        def wrap(verb: str, call: Call) -> Call:
            async def named(*arguments: Any) -> Any:
                token = self.verb.set(verb)
                try:
                    return await call(*arguments)
                finally:
                    self.verb.reset(token)

            return named

        return cast(Role, WrappedRole(role, wrap))

    def reach(self, point: str, *actions: str) -> None:
        """Kill or raise if this point is armed with one of these actions."""
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
        raise self._error(f"failpoint {point}={action}")
