"""The tasks of an app, by type."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

from windlass.client.options import TaskOptions, check_priority
from windlass.client.signature import Signature
from windlass.client.task import Definition
from windlass.core.codec import check_json, check_size, encode
from windlass.core.names import check_name, type_of
from windlass.core.queue import check_attempts, check_timeout
from windlass.core.retry import RetryPolicy
from windlass.errors import ConfigError, InvalidOption, InvalidPayload, UnknownTask

_KNOWN = frozenset(TaskOptions.__annotations__)


class Registry:
    """Definitions by type. Nothing is ever looked up by a name from a payload except here."""

    def __init__(self) -> None:
        self._definitions: dict[str, Definition] = {}

    def add(self, definition: Definition) -> None:
        """Register; a second function of the same type is a mistake that would run the wrong code."""
        present = self._definitions.get(definition.type)
        if present is not None:
            raise ConfigError(
                f"two tasks have the type {definition.type!r}: {present.place} and {definition.place}; "
                "give one of them another type=..."
            )
        self._definitions[definition.type] = definition

    def get(self, type_: str) -> Definition:
        """The task of this type."""
        try:
            return self._definitions[type_]
        except KeyError:
            raise UnknownTask(type_, list(self._definitions)) from None

    def check(self, type_: str, payload: Any) -> str:
        """The text of a payload that came as JSON; checked against the task if it is known here."""
        if type_ in self._definitions:
            return self._definitions[type_].signature.check(payload)
        if not isinstance(payload, Mapping):
            raise InvalidPayload("payload", f"must be a JSON object of arguments, not {type(payload).__name__}")
        check_json(dict(payload), "payload")
        return check_size(encode(dict(payload), "payload"), "payload")

    def __contains__(self, type_: str) -> bool:
        return type_ in self._definitions

    def __iter__(self) -> Iterator[Definition]:
        return iter(self._definitions.values())

    @property
    def types(self) -> tuple[str, ...]:
        """Every type, sorted."""
        return tuple(sorted(self._definitions))


def define(function: Callable[..., Any], options: Mapping[str, Any]) -> Definition:
    """A definition from a function and what was said about it."""
    unknown = [name for name in options if name not in _KNOWN]
    if unknown:
        raise InvalidOption(unknown[0], f"is not a task option; there are {', '.join(sorted(_KNOWN))}")
    if not inspect.isroutine(inspect.unwrap(function)) or not hasattr(function, "__qualname__"):
        raise ConfigError(f"a task is a function, not {type(function).__name__}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"{function.__qualname__} is a generator; a task is a plain or an async function")
    type_ = check_name(options.get("type", type_of(function.__qualname__)), "type")
    return Definition(
        type=type_,
        function=function,
        signature=Signature(function, type_),
        defaults=_defaults(options),
        retry=_retry(options.get("retry")),
        dead_on=_dead_on(options.get("dead_on", ())),
        returns=_returns(function),
        is_async=inspect.iscoroutinefunction(function),
        in_process=_in_process(options),
    )


def _in_process(options: Mapping[str, Any]) -> bool:
    place = options.get("run_in")
    if place not in (None, "process"):
        raise InvalidOption("run_in", f'must be "process" or left out, not {place!r}')
    return place == "process"


def _defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if "queue" in options:
        fields["queue"] = check_name(options["queue"], "queue")
    if "priority" in options:
        fields["priority"] = check_priority(options["priority"])
    if "timeout" in options:
        fields["timeout"] = check_timeout(options["timeout"])
    if "max_attempts" in options:
        fields["max_attempts"] = check_attempts(options["max_attempts"])
    elif (policy := _retry(options.get("retry"))) is not None:
        fields["max_attempts"] = policy.attempts
    return fields


def _retry(policy: Any) -> RetryPolicy | None:
    if policy is not None and not isinstance(policy, RetryPolicy):
        raise InvalidOption("retry", f"must be Exponential, Linear, Fixed or ByError, not {policy!r}")
    return policy


def _dead_on(errors: Any) -> tuple[type[BaseException], ...]:
    given = errors if isinstance(errors, tuple | list) else (errors,)
    wrong = [each for each in given if not (isinstance(each, type) and issubclass(each, BaseException))]
    if wrong:
        raise InvalidOption("dead_on", f"must be exception classes, not {wrong[0]!r}")
    return tuple(given)


def _returns(function: Callable[..., Any]) -> Any:
    try:
        return get_type_hints(function).get("return", Any)
    except NameError:
        return Any
