"""Concurrency keys as given: a value, or on a task a template over its arguments."""

from collections.abc import Collection, Mapping
from string import Formatter
from typing import Any

import msgspec

from windlass.core.flow.rate import Rate, parse_rate
from windlass.core.jobs.job import DEFAULT_KEY_LIMIT, MAX_COST, MAX_PER_KEY
from windlass.core.names import MAX_CONCURRENCY_KEY_LENGTH, check_key
from windlass.core.text import shown
from windlass.errors import InvalidName, InvalidOption

FIELD = "concurrency_key"
ORDERS = ("strict", "any")
_KINDS: dict[type, str] = {dict: "an object", list: "a list"}
_OF_KEY = {"key_limit": "key_limit", "key_strict": "key_order", "key_rate": "key_rate"}
"""Fields of a job that need a key, and the options that set them."""


class KeyTemplate(msgspec.Struct, frozen=True):
    """`album:{album}`: text with names of arguments in braces; no attribute access, no code."""

    text: str
    parts: tuple[tuple[str, str | None], ...]
    """Literal text, and the argument whose value follows it."""
    defaults: dict[str, Any]
    """Defaults of the task's signature, as JSON."""

    def render(self, payload: str) -> str:
        """The key of a call, from its payload: the same in every producer."""
        given = {**self.defaults, **msgspec.json.decode(payload)}
        key = "".join(literal + self._value(given, name) for literal, name in self.parts)
        try:
            return check_key(key, FIELD, MAX_CONCURRENCY_KEY_LENGTH)
        except InvalidName as error:
            raise InvalidName(FIELD, f"{error.problem}, as made from {shown(self.text)}") from None

    def check_known(self, later: Collection[str]) -> None:
        """Refuse a key that needs a parent's result: the key must be known at the enqueue."""
        for _, name in self.parts:
            if name in later:
                problem = f"argument {name!r} is PREVIOUS, which is not known yet; {shown(self.text)} needs its value"
                raise InvalidOption(FIELD, f"{problem}: give the job its own, with using(concurrency_key=...)")

    def _value(self, given: Mapping[str, Any], name: str | None) -> str:
        if name is None:
            return ""
        value = given.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return msgspec.json.encode(value).decode()
        problem = f"is {_KINDS.get(type(value), 'null')}" if name in given else "is not given"
        raise InvalidOption(
            FIELD, f"argument {name!r} {problem}; {shown(self.text)} needs text, a number or a boolean there"
        )


def key_template(text: object, arguments: Collection[str], defaults: Mapping[str, Any], type_: str) -> KeyTemplate:
    """A template for a task with these arguments; a bad one is refused here, not at the first job."""
    if not isinstance(text, str):
        raise InvalidName(FIELD, f"must be a string, not {type(text).__name__}")
    try:
        pieces = list(Formatter().parse(text))
    except ValueError as error:
        raise InvalidOption(
            FIELD, f"{shown(text)} is no template: {str(error).lower()}; write {{{{ and }}}} for braces"
        ) from None
    for _, name, form, conversion in pieces:
        if name is not None:
            _check_argument(text, f"{name}…" if form or conversion else name, arguments, type_)
    literal = "".join(piece[0] + ("" if piece[1] is None else "x") for piece in pieces)
    check_key(literal, FIELD, MAX_CONCURRENCY_KEY_LENGTH)
    named = {name for _, name, _, _ in pieces if name is not None}
    return KeyTemplate(
        text, tuple(piece[:2] for piece in pieces), {name: defaults[name] for name in named & defaults.keys()}
    )


def check_no_template(key: object, arguments: Collection[str]) -> None:
    """Refuse braces in the key of a job: they are not filled in, so all jobs would share one key."""
    named = [name for name in arguments if isinstance(key, str) and f"{{{name}}}" in key]
    if named:
        problem = f"{shown(key)} is taken as it is, {{{named[0]}}} is not filled in; give the task the template"
        raise InvalidOption(FIELD, f"{problem}, and the job the value")


def _check_argument(text: str, name: str, arguments: Collection[str], type_: str) -> None:
    if not name.isidentifier():
        raise InvalidOption(
            FIELD,
            f"{{{name:.100}}} in {shown(text)} is not the name of an argument: nothing else may stand in braces",
        )
    if name not in arguments:
        there = f"there are {', '.join(arguments)}" if arguments else "it has none"
        raise InvalidOption(FIELD, f"{shown(text)} names {name!r}, which is not an argument of {type_}; {there}")


def check_key_limit(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not DEFAULT_KEY_LIMIT <= value <= MAX_PER_KEY:
        limits = f"must be a whole number from {DEFAULT_KEY_LIMIT} to {MAX_PER_KEY}"
        raise InvalidOption("key_limit", f"{limits}, not {shown(value)}")
    return value


def check_key_order(value: object) -> bool:
    if value not in ORDERS:
        raise InvalidOption("key_order", f"{shown(value)} is not one of {', '.join(ORDERS)}")
    return value == ORDERS[0]


def check_cost(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_COST:
        raise InvalidOption("rate_cost", f"must be a whole number from 1 to {MAX_COST}, not {shown(value)}")
    return value


KEY_CHECKS: dict[str, Any] = {
    "key_limit": check_key_limit,
    "key_rate": lambda value: parse_rate(value, "key_rate"),
    "rate_cost": check_cost,
}
"""Options with fields of the same name, for a task and for a job; `key_order` has another."""


def key_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a NewJob that these options set, without the key itself."""
    fields = {name: check(options[name]) for name, check in KEY_CHECKS.items() if name in options}
    return {**fields, "key_strict": check_key_order(options["key_order"])} if "key_order" in options else fields


def check_key_options(fields: Mapping[str, Any], *, keyed: bool) -> None:
    """Check the options of a key that task and call set together."""
    for name, option in _OF_KEY.items():
        if not keyed and name in fields:
            raise InvalidOption(option, "has no effect without a concurrency_key")
    rate: Rate | None = fields.get("key_rate")
    if rate is not None and (cost := fields.get("rate_cost", 1)) > rate.burst:
        problem = f"is {cost}, more than the {rate.burst} that a key_rate of {rate} can save up; give it a burst"
        raise InvalidOption("rate_cost", problem)
