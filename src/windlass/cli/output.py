"""What people and programs read: tables and JSON, made in one place."""

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.padding import Padding
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


TIMES = frozenset({"done/s", *(f"{what} {share}" for what in ("wait", "run") for share in ("p50", "p95", "p99"))})
COURSES = frozenset({"done", "failures", "most pending", "oldest"})
NUMBERS = frozenset(
    {"attempt", "priority", "pid", "slots", "running", "per minute", "last beat", "jobs", *TIMES, *COURSES, *STYLES}
)


PLAIN_WIDTH = 200
"""Of what goes into a file or a pipe, unless COLUMNS says otherwise."""


class PlainConsole(Console):
    """For files and pipes: no line ends in the blanks that fill a table."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As on a terminal, but for those blanks."""
        with self.capture() as printed:
            super().print(*objects, **options)
        self.file.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))
        self.file.flush()


def console(plain_width: int = PLAIN_WIDTH) -> Console:
    """Standard output; plain when it is not a terminal, and then as wide as COLUMNS says, if it does."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    told = os.environ.get("COLUMNS", "")
    return PlainConsole(highlight=False, width=int(told) if told.isdecimal() and int(told) else plain_width)


def print_json(value: Any) -> None:
    """One JSON document, indented, with the field names of the records; what a terminal would obey is escaped."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    typer.echo("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str, spare: Sequence[str] = ()
) -> None:
    """A table, or a sentence if there is nothing to show.

    Where it does not fit, the `spare` columns go first, and then the last one moves to a line of its own: an id
    that is cut off is of no use to anybody.
    """
    shown, table = list(columns), [list(row) for row in rows]
    if not table:
        typer.echo(empty)
        return
    out = console()
    for name in spare:
        if _width(shown, table) > out.width and name in shown:
            index = shown.index(name)
            shown, *table = [_without(line, index) for line in (shown, *table)]
    if _width(shown, table) > out.width and len(shown) > 2:
        _print_tall(out, shown, table)
    else:
        _print_wide(out, shown, table)


def _width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    return sum(max(len(line[i]) for line in (columns, *rows)) + 2 for i in range(len(columns)))


def _without(line: Sequence[str], index: int) -> list[str]:
    return [cell for i, cell in enumerate(line) if i != index]


def _print_wide(out: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in NUMBERS else "left", no_wrap=name != columns[-1])
    for row in rows:
        table.add_row(*[plain(cell) for cell in row])
    out.print(table)


def _print_tall(out: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The last column, which is a sentence, under each row; where that is too wide still, the first one above it."""
    widths = [max(len(line[i]) for line in (columns, *rows)) for i in range(len(columns) - 1)]
    narrow = _width(columns[:-1], [row[:-1] for row in rows]) - 2 > out.width
    for number, line in enumerate((columns, *rows)):
        sized = zip(columns[:-1], line[:-1], widths, strict=True)
        cells = [cell.rjust(width) if name in NUMBERS else cell.ljust(width) for name, cell, width in sized]
        head = f"{line[0]}\n    {'  '.join(cells[1:])}" if narrow else "  ".join(cells)
        out.print(plain(head.rstrip(), "bold" if number == 0 else ""), overflow="ellipsis", no_wrap=True)
        if number and line[-1]:
            out.print(Padding(plain(line[-1], "dim"), (0, 0, 0, 4)))


def plain(text: str, style: str = "") -> Text:
    """Text from a job, shown as it is: nothing in it that a terminal would obey, or rich would take for markup."""
    return Text(printable(text), style)


def hanging(head: str, text: str) -> Table:
    """A line whose text, where it is too long, goes on under itself."""
    line = Table.grid()
    line.add_column(no_wrap=True)
    line.add_column(overflow="fold")
    line.add_row(Text(head, "dim"), plain(text))
    return line


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
