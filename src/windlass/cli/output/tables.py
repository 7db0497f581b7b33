"""Tables and lines, for people."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

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
TIMELINE = frozenset({"done", "failures", "most pending", "oldest"})
SPREAD = frozenset({"median", "lowest", "highest"})
NUMBERS = frozenset(
    {
        "attempt",
        "priority",
        "pid",
        "slots",
        "running",
        "per minute",
        "last beat",
        "jobs",
        *SPREAD,
        *TIMES,
        *TIMELINE,
        *STYLES,
    }
)


PLAIN_WIDTH = 200
"""The width for files and pipes, unless COLUMNS is set."""


class PlainConsole(Console):
    """For files and pipes: without trailing blanks."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print without trailing blanks."""
        with self.capture() as printed:
            super().print(*objects, **options)
        self.file.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))
        self.file.flush()


def console(plain_width: int = PLAIN_WIDTH) -> Console:
    """Standard output; plain if it is not a terminal, with the width of COLUMNS."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    given = os.environ.get("COLUMNS", "")
    return PlainConsole(highlight=False, width=int(given) if given.isdecimal() and int(given) else plain_width)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str, spare: Sequence[str] = ()
) -> None:
    """A table, or a sentence if it is empty.

    If it is too wide, the `spare` columns are dropped first, then the last one moves to its own line: an id that is
    cut off is useless.
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
    """The last column, a sentence, under each row; if that is still too wide, the first one above it."""
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
    """Text from a job, without control characters or markup of rich."""
    return Text(printable(text), style)


def hanging(head: str, text: str) -> Table:
    """A line that wraps with an indent."""
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
    """A moment in UTC, to the millisecond."""
    return "-" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"
