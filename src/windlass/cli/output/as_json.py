"""JSON, for programs."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import typer


def print_json(value: Any) -> None:
    """One JSON document, indented, with the field names of the records; control characters are escaped."""
    typer.echo(_escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def print_json_lines(values: Iterable[Any]) -> None:
    """JSON Lines: each value on a line of its own."""
    for value in values:
        typer.echo(_escaped(msgspec.json.encode(value).decode()))


def _escaped(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
