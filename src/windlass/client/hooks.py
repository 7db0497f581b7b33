"""Hooks: functions of the user's that run when a process begins and ends, and when a job has died."""

import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

import msgspec

from windlass.errors import ConfigError


class Hook(msgspec.Struct, frozen=True):
    """One such function, and how many of the things it may be given it takes."""

    name: str
    function: Callable[..., Any]
    takes: int
    is_async: bool
    place: str

    def __str__(self) -> str:
        return f"{self.name} hook {self.function.__qualname__} ({self.place})"

    def __call__(self, *given: Any) -> Any:
        return self.function(*given[: self.takes])


class Hooks(msgspec.Struct):
    """The hooks of an app, in the order in which they were registered."""

    start: list[Hook] = []
    stop: list[Hook] = []
    dead: list[Hook] = []

    def absorb(self, others: "Hooks") -> None:
        """Take over those of a task set, after the ones that are here."""
        self.start += others.start
        self.stop += others.stop
        self.dead += others.dead


def hook_of(name: str, function: Callable[..., Any], *may_take: str) -> Hook:
    """A hook, if the function can be called as one: with the first of what it may take, or with all of it."""
    if not inspect.isroutine(inspect.unwrap(function)) or not hasattr(function, "__qualname__"):
        raise ConfigError(f"@app.{name} takes a function, not {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"{function.__qualname__} is a generator; @app.{name} takes a plain or an async function")
    takes = _takes(name, function, may_take)
    return Hook(name, function, takes, inspect.iscoroutinefunction(function), place(function))


def _takes(name: str, function: Callable[..., Any], may_take: tuple[str, ...]) -> int:
    signature = inspect.signature(function)
    for count in range(len(may_take), -1, -1):
        try:
            signature.bind(*may_take[:count])
        except TypeError:
            continue
        return count
    wanted = ", ".join(may_take)
    raise ConfigError(
        f"{function.__qualname__} ({place(function)}) cannot be a hook: @app.{name} calls it with ({wanted}), "
        f"or fewer of these, and it takes {signature}"
    )


def place(function: Callable[..., Any]) -> str:
    """Where a function was written, for error messages."""
    code = code_of(function)
    return "built in" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """The code of the function itself, whatever decorates it; functions written in C have none."""
    return getattr(inspect.unwrap(function), "__code__", None)
