"""A task's signature: converts a call to a payload, checked at the producer, and back at the worker."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Union

import msgspec
from msgspec import UNSET, UnsetType

from windlass.client.tasks.annotations import RETURN, is_context, resolve_annotations
from windlass.client.tasks.options import JobOptions
from windlass.client.tasks.previous import Placeholder
from windlass.core.codec import (
    INLINE_LIMIT,
    UNREADABLE,
    check_json,
    check_size,
    decode,
    decode_object,
    encode,
)
from windlass.core.suggest import OPTIONS_ELSEWHERE
from windlass.errors import ConfigError, InvalidPayload

_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
_REFUSED = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of positional arguments",
}
_WITHIN = "{!r} is a whole argument, and cannot stand within another value"
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_JSON = (str, int, float, bool, list, dict, type(None))
_CONTEXT_NAMES = ("ctx", "context", "self")
_UNTYPED = (inspect.Parameter.empty, Any, object)


class Signature:
    """The arguments of one task, by name. A payload is a JSON object of the given ones."""

    def __init__(self, function: Callable[..., Any], type_: str) -> None:
        self._type = type_
        hints = resolve_annotations(function, type_)
        parameters = list(inspect.signature(function).parameters.values())
        self._check(parameters)
        self.returns = hints.get(RETURN, Any)
        self.context = _context_name(parameters, hints)
        self._extra = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        own = [p for p in parameters if p.name != self.context and p.kind is not inspect.Parameter.VAR_KEYWORD]
        self._positional = tuple(p.name for p in own if p.kind is _POSITIONAL)
        self._all = len(own) if len(self._positional) == len(own) else -1
        """How many arguments by position are all that it takes; -1 if some are by name only."""
        self._required = tuple(p.name for p in own if p.default is inspect.Parameter.empty)
        self._needed = frozenset(self._required)
        self._own = own
        self._fields = {p.name: hints.get(p.name, Any) for p in own}
        self._typed = frozenset(name for name, hint in self._fields.items() if hint not in _UNTYPED)
        self._check_types()
        self._optional = tuple(name for name in self._fields if name not in self._needed)
        self._struct = self._make_struct()
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(self._struct, dec_hook=decode_object)
        self._complete: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            self._make_struct(self._needed), dec_hook=decode_object
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._fields)

    def annotation(self, name: str) -> Any:
        """The type of a parameter; Any without one."""
        return _plain(self._fields[name])

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names, and `**` if it takes any other too."""
        return (*self._fields, "**") if self._extra else self.names

    def unknown(self, text: str) -> tuple[str, ...]:
        """The arguments of a stored payload that this version of the task does not have."""
        try:
            given = decode(text)
        except UNREADABLE:
            return ()
        if self._extra or not isinstance(given, dict):
            return ()
        return tuple(name for name in given if name not in self._fields)

    @property
    def defaults(self) -> dict[str, Any]:
        """Defaults of the arguments, as JSON; defaults that are not JSON are left out."""
        found: dict[str, Any] = {}
        for parameter in self._own:
            if parameter.default is not inspect.Parameter.empty:
                try:
                    found[parameter.name] = decode(encode(parameter.default, parameter.name))
                except InvalidPayload:
                    continue
        return found

    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of its payload, with all definitions inside."""

        def any_of(kind: type) -> dict[str, Any]:
            # Not empty for a type without a schema of its own, such as Results: msgspec refuses an empty one.
            schema = getattr(kind, "model_json_schema", None)
            found: dict[str, Any] = schema() if callable(schema) else {"title": kind.__name__}
            return found

        schema: dict[str, Any] = msgspec.json.schema(self._struct, schema_hook=any_of)
        body = schema.get("$defs", {}).pop("Arguments", schema)
        defs = {"$defs": schema["$defs"]} if schema.get("$defs") else {}
        return {**body, **defs, "required": list(self._required), "additionalProperties": self._extra}

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int = INLINE_LIMIT) -> str:
        """The payload of a call, within a limit; raises InvalidPayload if the task would refuse it."""
        return self.encode_bound(self.bind(args, kwargs), limit)

    def encode_bound(self, given: Mapping[str, Any], limit: int = INLINE_LIMIT) -> str:
        """The payload of bound arguments; missing ones are added later."""
        try:
            for name, value in given.items():
                if type(value) is not str or not value.isascii():  # such a text passes
                    check_json(value, name, typed=name in self._typed, most=limit)
            text = check_size(encode(given, "payload"), "payload", limit)
            # Validated as in the worker: a call it would refuse is refused at the producer.
            self._read(text)
        except InvalidPayload as error:
            value = _at(given, error.field)
            problem = _WITHIN.format(value) if isinstance(value, Placeholder) else _as_given(error.problem, value)
            raise InvalidPayload(error.field, f"{problem} (task {self._type})") from None
        return text

    def check(self, payload: Any, limit: int = INLINE_LIMIT) -> str:
        """The payload of a call given as JSON, from a command line or another program."""
        if not isinstance(payload, dict):
            raise InvalidPayload("payload", f"must be a JSON object of arguments, not {type(payload).__name__}")
        return self.encode((), payload, limit)

    def part(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Some arguments of a call in the form of its payload, for searching."""
        held: dict[str, Any] = decode(encode(self._bound(args, kwargs), "payload"))
        return held

    def decode(self, text: str) -> dict[str, Any]:
        """The keyword arguments of a stored payload."""
        if not self._extra:
            try:
                given = msgspec.structs.asdict(self._complete.decode(text))
                for name in self._optional:
                    if given[name] is UNSET:
                        del given[name]
                return given
            except Exception:
                pass  # the check below finds the error again and says it as at the producer
        given = self._decode(text)
        self._check_complete(given)
        return given

    @property
    def first(self) -> str | None:
        """The first parameter, positional or not: it gets the result in a bare link of a chain."""
        return next(iter(self._fields), None)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, complete; raises InvalidPayload."""
        if not kwargs and len(args) == self._all:
            return dict(zip(self._positional, args, strict=True))
        given = self._bound(args, kwargs)
        self._check_complete(given)
        return given

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._positional):
            limit = len(self._positional)
            raise InvalidPayload("arguments", f"{self._type} takes {limit} by position, not {len(args)}")
        given = dict(zip(self._positional, args, strict=False))
        for name, value in kwargs.items():
            if name in given:
                raise InvalidPayload(name, f"is given to {self._type} twice")
            if name == self.context or (name not in self._fields and not self._extra):
                raise InvalidPayload(str(name), f"is not an argument of {self._type}{self._hint(name)}")
            given[name] = value
        return given

    def _hint(self, name: str) -> str:
        """A hint what to write instead, for options of jobs (also as other queues spell them); else what the task
        takes.
        """
        option = OPTIONS_ELSEWHERE.get(name, name)
        if option in JobOptions.__annotations__:
            return f": it is an option of the job, which `{self._type}.using({option}=…).enqueue(…)` takes"
        return f", which takes {', '.join(self._fields) or 'no arguments'}"

    def _check_complete(self, given: Mapping[str, Any]) -> None:
        if not given.keys() >= self._needed:
            missing = [name for name in self._required if name not in given]
            needs = f"is missing: {self._type} needs {', '.join(self._required)}"
            first = self._required[0]
            if first in _CONTEXT_NAMES and first not in self._typed:
                needs += f"; to get the context, annotate it: {first}: Context"
            raise InvalidPayload(missing[0], needs)

    def _decode(self, text: str) -> dict[str, Any]:
        read = self._read(text)
        return read if self._extra else self._given(read)

    def _read(self, text: str) -> Any:
        """The validated arguments: a struct, or a dict if the task takes any."""
        try:
            return self._decode_extra(text) if self._extra else self._decoder.decode(text)
        except msgspec.ValidationError as error:
            if unknown := self.unknown(text):
                takes = ", ".join(self._fields) or "no arguments"
                raise InvalidPayload(unknown[0], f"is not a parameter of {self._type}, which takes {takes}") from None
            raise _explained(error) from None
        except (msgspec.DecodeError, UnicodeError) as error:
            raise InvalidPayload("payload", f"cannot be read: {error}") from None
        except Exception as error:
            # A user's validator may raise anything.
            raise InvalidPayload("payload", f"{type(error).__name__}: {error}") from None

    def _decode_extra(self, text: str) -> dict[str, Any]:
        raw: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
        declared = {name: value for name, value in raw.items() if name in self._fields}
        typed: Any = msgspec.convert(declared, self._struct, dec_hook=decode_object, str_keys=True)
        return {**raw, **self._given(typed)}

    def _given(self, struct: Any) -> dict[str, Any]:
        given = msgspec.structs.asdict(struct)
        return {name: value for name, value in given.items() if value is not UNSET}

    def _check_types(self) -> None:
        """Refuse annotations that JSON cannot tell apart, now and not at the first job."""
        for name, hint in self._fields.items():
            try:
                msgspec.json.Decoder(_plain(hint), dec_hook=decode_object)
            except Exception as error:
                raise ConfigError(
                    f"task {self._type}: parameter {name!r} cannot be checked: {error}; "
                    "annotate it Any to pass plain JSON"
                ) from None

    def _make_struct(self, needed: Collection[str] = ()) -> type:
        """A struct with one field per argument; optional arguments may be missing."""
        fields = [
            (name, _plain(hint)) if name in needed else (name, Union[_plain(hint), UnsetType], UNSET)  # noqa: UP007
            for name, hint in self._fields.items()
        ]
        try:
            return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True, module=__name__)
        except TypeError as error:
            raise ConfigError(f"task {self._type}: {error}") from None

    def _check(self, parameters: list[inspect.Parameter]) -> None:
        problems = [
            f"task {self._type}: parameter {p.name!r} {_REFUSED[p.kind]}; a payload holds arguments by name"
            for p in parameters
            if p.kind in _REFUSED
        ]
        if problems:
            raise ConfigError(problems)


def _plain(hint: Any) -> Any:
    return Any if hint in _UNTYPED else hint


def _context_name(parameters: list[inspect.Parameter], hints: dict[str, Any]) -> str | None:
    return next((each.name for each in parameters if is_context(hints.get(each.name))), None)


def _explained(error: msgspec.ValidationError) -> InvalidPayload:
    """A decoding error by argument: "Expected `int`, got `str` - at `$.user_id`" → user_id: expected int, got str."""
    problem, _, path = str(error).partition(" - at `$")
    field = path.rstrip("`").lstrip(".") or "payload"
    return InvalidPayload(field, problem.replace("`", "").replace("Expected", "expected", 1))


def _as_given(problem: str, value: Any) -> str:
    """The value as the caller gave it: a date is text in JSON, but the message must name its type."""
    return problem if type(value) in _JSON else re.sub(r"\bgot \w+$", f"got {type(value).__name__}", problem)


def _at(given: Mapping[str, Any], field: str) -> Any:
    """The value at a path such as `order.lines[0]`; None if there is none."""
    value: Any = given
    if "..." in field:
        return None
    try:
        for index, name in _STEP.findall(field):
            if index:
                value = value[int(index)]
            else:
                value = value[name] if isinstance(value, Mapping) else getattr(value, name)
    except (LookupError, TypeError, AttributeError):
        return None
    return value
