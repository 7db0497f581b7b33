"""The annotations of a task's function, each resolved by itself."""

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_type_hints

from windlass.client.tasks.context import Context
from windlass.errors import ConfigError

RETURN = "return"
_CONTEXT = ("Context", "windlass.Context")
"""The Context is known by its name, also if only a type checker imports it."""


def resolve_annotations(function: Callable[..., Any], type_: str) -> dict[str, Any]:
    """By parameter, and `return`; raises ConfigError that names every annotation that cannot be resolved."""
    try:
        return get_type_hints(function)
    except Exception as error:
        first = error
    resolved: dict[str, Any] = {}
    problems: list[str] = []
    for name, annotation in _annotations(function, type_, first).items():
        try:
            resolved[name] = Context if annotation in _CONTEXT else _resolve(function, annotation)
        except Exception as error:
            what = "its result" if name == RETURN else f"parameter {name!r}"
            problems.append(
                f"task {type_}: {what} is annotated {annotation!r}, which cannot be resolved: {error}; import it at "
                "module level, not under TYPE_CHECKING or in a function, or annotate it Any"
            )
    if problems:
        raise ConfigError(problems)
    return resolved


def _annotations(function: Callable[..., Any], type_: str, first: Exception) -> dict[str, Any]:
    try:
        return dict(function.__annotations__)
    except NameError:
        # Python 3.14 evaluates all of them together.
        raise ConfigError(f"task {type_}: an annotation cannot be resolved: {first}") from None


def _resolve(function: Callable[..., Any], annotation: Any) -> Any:
    names = getattr(inspect.unwrap(function), "__globals__", {})
    return get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), names)["it"]
