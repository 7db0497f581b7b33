"""Fields of a form, made from the JSON Schema of a task: one for each argument, with its own error."""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from windlass.client.tasks.task import Definition
from windlass.core.codec import check_json
from windlass.core.text import cut
from windlass.errors import InvalidPayload
from windlass.server.api.live_workers import sees_task
from windlass.server.dashboard.page import View
from windlass.server.decode import parse_value

Kind = Literal["text", "integer", "number", "boolean", "choice", "json"]
SIMPLE: dict[str, Kind] = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}
PREFIX = "arg."
"""Prefix of the names of arguments in a form, apart from its other fields."""
_TOP = re.compile(r"[^.\[]+")


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One argument of a task in a form."""

    name: str
    kind: Kind
    required: bool
    nullable: bool = False
    choices: tuple[str, ...] = ()
    hint: str = ""
    text: str = ""
    """Its content."""
    error: str = ""

    @property
    def key(self) -> str:
        """Its name in the form."""
        return PREFIX + self.name


def known_task(view: View, type_: str) -> Definition | None:
    """The task of a type; None if the server does not know it, or the token does not cover it."""
    task = view.app.registry.get(type_) if type_ in view.app.registry else None
    return task if task is not None and sees_task(view.caller.rights, task) else None


def fields_of(schema: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Field]:
    """A field for each argument, in the order of the task's parameters."""
    required = set(schema.get("required", ()))
    return [
        _field(name, _resolved(part, schema), name in required, defaults)
        for name, part in schema.get("properties", {}).items()
    ]


def _field(name: str, part: Mapping[str, Any], required: bool, defaults: Mapping[str, Any]) -> Field:
    nullable = any(each.get("type") == "null" for each in part.get("anyOf", ()))
    others = [each for each in part.get("anyOf", ()) if each.get("type") != "null"]
    only = others[0] if len(others) == 1 else part
    choices = tuple(each for each in only.get("enum", ()) if isinstance(each, str))
    kind: Kind = (
        "choice" if choices and len(choices) == len(only["enum"]) else SIMPLE.get(str(only.get("type")), "json")
    )
    default = "" if required or name not in defaults else f", otherwise {cut(as_text(defaults[name]), 60)}"
    wanted = {"choice": "one of these", "json": "JSON"}.get(kind, kind)
    hint = f"{wanted}{' or null' if nullable and required else ''}, {'required' if required else 'optional'}{default}"
    return Field(name=name, kind=kind, required=required, nullable=nullable, choices=choices, hint=hint)


def _resolved(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema instead of a reference to it."""
    name = str(part.get("$ref", "")).rpartition("/")[2]
    return schema.get("$defs", {}).get(name, {}) if name else part


def filled(fields: list[Field], payload: Mapping[str, Any]) -> list[Field]:
    """The fields with the values of a payload. A text with invisible characters becomes JSON, which shows them."""
    return [_filled(each, payload[each.name]) if each.name in payload else each for each in fields]


def _filled(field: Field, value: Any) -> Field:
    fits = {
        "text": isinstance(value, str) and _is_plain(value) and bool(value),
        "choice": value in field.choices,
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
    }.get(field.kind, True)
    text = value if fits and field.kind in ("text", "choice") else as_text(value)
    return msgspec.structs.replace(field, text=text, kind=field.kind if fits else "json")


def _is_plain(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


def as_text(value: Any) -> str:
    """A value as JSON whose invisible characters are escaped."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def read_fields(fields: list[Field], form: Mapping[str, str]) -> tuple[dict[str, Any], list[Field]]:
    """The arguments of a form, and its fields as they were filled in, each with its error."""
    given: dict[str, Any] = {}
    seen = []
    for field in fields:
        text = form.get(field.key, "").replace("\r\n", "\n")
        kind: Kind = "json" if form.get(f"as.{field.name}") == "json" else field.kind
        field = msgspec.structs.replace(field, text=text, kind=kind)
        if not text and (not field.required or kind != "text"):
            if field.required and field.nullable:
                given[field.name] = None
            elif field.required:
                field = msgspec.structs.replace(field, error="is required")
            seen.append(field)
            continue
        try:
            given[field.name] = _value(field, text)
        except InvalidPayload as error:
            inside = "" if error.field == field.name else f"{error.field}: "
            field = msgspec.structs.replace(field, error=inside + error.problem)
        seen.append(field)
    return given, seen


def _value(field: Field, text: str) -> Any:
    if field.kind in ("text", "choice"):
        return text
    value = read_json(text, field.name)
    wanted = {"integer": int, "number": int | float, "boolean": bool}.get(field.kind)
    wrong = wanted is not None and (not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)))
    if wrong and not (value is None and field.nullable):
        raise InvalidPayload(field.name, f"must be {_WANTED[field.kind]}, not {cut(text, 60)}")
    return value


def read_json(text: str, name: str) -> Any:
    """A JSON value of a form, parsed strictly: without NaN, and with numbers that every store keeps exactly."""
    value = parse_value(text.strip().encode(errors="replace"), name)
    check_json(value, name)
    return value


_WANTED = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}


def with_error(fields: list[Field], path: str, problem: str) -> tuple[list[Field], bool]:
    """The fields with an error at the one that a path such as `order.lines[0]` begins with; whether there is one."""
    top = _TOP.match(path)
    name = top[0] if top else ""
    inside = "" if path == name else f"{path}: "
    made = [
        msgspec.structs.replace(each, error=f"{inside}{problem}") if each.name == name else each for each in fields
    ]
    return made, made != fields
