"""Hooks: user functions that run when a process starts and stops, and when a job has died."""

import inspect
from collections.abc import Callable
from types import CodeType
from typing import Any

import msgspec

from windlass.errors import ConfigError


class Hook(msgspec.Struct, frozen=True):
    """One hook, and how many of its possible arguments it takes."""

    name: str
    function: Callable[..., Any]
    takes: int
    is_async: bool
    location: str

    def __str__(self) -> str:
        return f"{self.name} hook {self.function.__qualname__} ({self.location})"

    def __call__(self, *given: Any) -> Any:
        return self.function(*given[: self.takes])


class Hooks(msgspec.Struct):
    """The hooks of an app, in order of registration."""

    start: list[Hook] = []
    stop: list[Hook] = []
    dead: list[Hook] = []

    def absorb(self, others: "Hooks") -> None:
        """Add the hooks of a task set."""
        self.start += others.start
        self.stop += others.stop
        self.dead += others.dead


def hook_of(name: str, function: Callable[..., Any], *may_take: str) -> Hook:
    """A hook; the function may take all of these arguments, only the first ones, or none."""
    if not is_function(function):
        raise ConfigError(f"@app.{name} takes a function, not {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"{function.__qualname__} is a generator; @app.{name} takes a plain or an async function")
    takes = _takes(name, function, may_take)
    return Hook(name, function, takes, inspect.iscoroutinefunction(function), location(function))


def is_function(thing: Any) -> bool:
    """Whether it is a function, decorated or not. A task is not, though it has a function's attributes."""
    return (
        inspect.isroutine(inspect.unwrap(thing)) and hasattr(thing, "__qualname__") and not hasattr(thing, "aenqueue")
    )


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
        f"{function.__qualname__} ({location(function)}) cannot be a hook: @app.{name} calls it with ({wanted}), "
        f"or fewer of these, and it takes {signature}"
    )


def location(function: Callable[..., Any]) -> str:
    """Where a function is defined, for error messages."""
    code = code_of(function)
    return "built in" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """The code of the innermost function; functions written in C have none."""
    return getattr(inspect.unwrap(function), "__code__", None)


class State:
    """Holds pools and clients: `state.pool = …` in `@app.on_start`, `ctx.state.pool` in a handler.

    Each process that runs handlers has its own, shared by its handlers.
    """

    def __getattr__(self, name: str) -> Any:
        # Only called for missing attributes.
        raise AttributeError(f"state has no {name!r}; set `state.{name} = …` in an @app.on_start hook")

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"State({', '.join(sorted(vars(self)))})"
