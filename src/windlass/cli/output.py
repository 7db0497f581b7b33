"""What people and programs read: tables and JSON, made in one place."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windlass.core.moments import SECOND, show_duration
from windlass.core.text import printable

STYLES = {
    "pending": "cyan",
    "running": "blue",
    "scheduled": "magenta",
    "blocked": "yellow",
    "failed": "yellow",
    "completed": "green",
    "dead": "bold red",
    "cancelled": "dim",
}


def console() -> Console:
    """Standard output; plain when it is not a terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 200)


def print_json(value: Any) -> None:
    """One JSON document, indented, with the field names of the records; what a terminal would obey is escaped."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    typer.echo("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str) -> None:
    """A table, or a sentence if there is nothing to show."""
    rows = list(rows)
    if not rows:
        typer.echo(empty)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        right = name in ("attempt", "priority", "slots", "running", "per minute", "jobs") or name in STYLES
        table.add_column(name, justify="right" if right else "left", no_wrap=name != columns[-1])
    for row in rows:
        table.add_row(*[plain(cell) for cell in row])
    console().print(table)


def plain(text: str, style: str = "") -> Text:
    """Text from a job, shown as it is: nothing in it that a terminal would obey, or rich would take for markup."""
    return Text(printable(text), style)


def styled(status: str) -> Text:
    """A status in its colour."""
    return Text(status, STYLES.get(status, ""))


def ago(moment: datetime | None) -> str:
    """How long ago, or in how long."""
    if moment is None:
        return "-"
    micros = round((datetime.now(UTC) - moment).total_seconds() * SECOND)
    return f"{show_duration(micros)} ago" if micros >= 0 else f"in {show_duration(-micros)}"


def clock(moment: datetime | None) -> str:
    """A moment, to the millisecond, in UTC."""
    return "-" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"
