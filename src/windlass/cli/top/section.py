"""One table of the view: as many columns and rows as fit."""

from collections.abc import Sequence

import msgspec
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

GAP = 2
NARROWEST_NAME = 14
"""The first column, a name, is cut to this before others are dropped."""
NARROWEST_TEXT = 24
"""The minimum width of the last column, if it grows, before others are dropped."""


class Column(msgspec.Struct, frozen=True):
    """A column: its name, and its order of removal if the table is too wide (the highest first; 0 stays)."""

    name: str
    goes: int = 0
    right: bool = True


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A table before it is fitted: rows in order, and `busy` to choose among them if not all fit."""

    columns: tuple[Column, ...]
    rows: list[list[Text]]
    busy: list[float]
    empty: str
    grows: bool = False
    """Whether the last column takes the remaining width."""
    endless: bool = False
    """Whether there are always more rows, so that their number is not shown."""

    @property
    def wanted(self) -> int:
        """How many rows it would show; a sentence if it has none."""
        return max(1, len(self.rows))

    def fitted(self, width: int, rows: int) -> Table | Text:
        """At most this wide and this many rows, and its heading."""
        if not self.rows:
            sentence = Text.assemble((self.columns[0].name, "bold"), "\n", (self.empty, "dim"))
            sentence.no_wrap, sentence.overflow = True, "ellipsis"
            return sentence
        chosen = self._chosen(rows)
        names = self._names(len(self.rows) - len(chosen))
        widths = [self._width(position, name) for position, name in enumerate(names)]
        kept = self._kept(width, widths)
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), collapse_padding=True, width=width)
        for position in kept:
            self._add_column(table, position, names[position], widths[position])
        if not self.grows:
            table.add_column("", ratio=1)
        for row in chosen:
            table.add_row(*(self.rows[row][position] for position in kept))
        return table

    def _add_column(self, table: Table, position: int, name: str, width: int) -> None:
        growing = self.grows and position == len(self.columns) - 1
        table.add_column(
            Text(name, "bold"),
            justify="right" if self.columns[position].right else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if growing else None,
            min_width=None if position == 0 or growing else width,
        )

    def _chosen(self, most: int) -> list[int]:
        """The busiest rows, in their own order, so that they stay in place between frames."""
        busiest = sorted(range(len(self.rows)), key=lambda row: -self.busy[row])[: max(0, most)]
        return sorted(busiest)

    def _names(self, left: int) -> list[str]:
        first, *rest = (column.name for column in self.columns)
        return [f"{first} (+{left})" if left and not self.endless else first, *rest]

    def _kept(self, width: int, widths: Sequence[int]) -> list[int]:
        needed = [min(widths[0], NARROWEST_NAME), *widths[1:]]
        kept = list(range(len(self.columns)))
        for position in sorted(kept, key=lambda each: -self.columns[each].goes):
            if not self.columns[position].goes or sum(needed[each] + GAP for each in kept) <= width + GAP:
                break
            kept.remove(position)
        return kept

    def _width(self, position: int, name: str) -> int:
        cells = [cell_len(row[position].plain) for row in self.rows]
        widest = max(cell_len(name), *cells)
        return min(widest, NARROWEST_TEXT) if self.grows and position == len(self.columns) - 1 else widest


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """Rows for each of several tables: one by one in turn, until all are satisfied or the room is used up."""
    given = [0] * len(wanted)
    while room > 0 and given != list(wanted):
        for index, want in enumerate(wanted):
            if given[index] < want and room > 0:
                given[index] += 1
                room -= 1
    return given
