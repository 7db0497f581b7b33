"""Annotations and signatures as one writes them, for the reference."""

import inspect
import re
from types import NoneType, UnionType
from typing import Any, ForwardRef, Literal, Union, get_args, get_origin, get_overloads


def calls(name: str, function: Any) -> str:
    """Every way to call it: its overloads, or the one signature."""
    return "<br>".join(f"`{name}{_signature(each)}`" for each in get_overloads(function) or [function])


class Shown(str):
    """An annotation that is printed as it is."""

    __repr__ = str.__str__


def _signature(function: Any) -> str:
    found = inspect.signature(function)
    parameters = [
        each.replace(
            annotation=each.annotation if each.annotation is each.empty else Shown(type_text(each.annotation))
        )
        for each in found.parameters.values()
        if each.name not in ("self", "cls")
    ]
    returns = Shown(type_text(found.return_annotation))
    return str(found.replace(parameters=parameters, return_annotation=returns)).removesuffix(" -> None")


ALIASES = {
    "Duration": (
        "float | timedelta | str",
        'Seconds, a timedelta, or text such as "500ms", "30s", "5m", "2h" or "7d".',
    ),
    "JobRef": ("str | UUID | HasId", "What names a job: its id, a Handle, or a Job."),
}
"""Public names of unions, which annotations do not keep."""


def type_text(annotation: Any) -> str:
    """An annotation as one writes it, without modules."""
    text = _text(annotation)
    for name, (union, _) in ALIASES.items():
        text = text.replace(union, name)
    return text


def _text(annotation: Any) -> str:
    inner = [type_text(each) for each in get_args(annotation)]
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join(inner)
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(annotation)))}]"
    if annotation in (None, NoneType) or isinstance(annotation, ForwardRef):
        return "None" if annotation in (None, NoneType) else type_text(annotation.__forward_arg__)
    plain = inspect.isclass(annotation) and not inner
    text = annotation.__name__ if plain else annotation if isinstance(annotation, str) else str(annotation)
    text = re.sub(r"^\*<class '.*\.(\w+)'>$", r"Unpack[\1]", text)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])|~|'", "", text)
