"""A report: sections, each with the machine it was taken on; written as JSON, Markdown and SVG."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from windlass.bench import words
from windlass.bench.figures import Listing, Row, Section
from windlass.bench.machine import Machine
from windlass.bench.svg import draw

RESULTS = "results.json"
PAGE = "README.md"
RULES = """A drain ends when the last job is durably completed. Default settings, history kept, no special path for
no-ops. Windlass and what it is compared with run alternately within one run; a figure is the median of the rounds, a
ratio the median of the ratios round by round. A target that is missed says so. Figures of other machines differ;
ratios less so."""


class Taken(msgspec.Struct, frozen=True):
    """A section, where and when it was taken, and over how many rounds."""

    section: Section
    machine: Machine
    version: str
    rounds: int
    quick: bool = False


class Report(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    taken: list[Taken]

    def merged(self, newer: "Report") -> "Report":
        """Sections of the newer one take the place of those of the same name and store; the others stay."""
        place = {_key(each): each for each in self.taken}
        return Report(list({**place, **{_key(each): each for each in newer.taken}}.values()))


def _key(taken: Taken) -> tuple[str, str]:
    return taken.machine.store.get("store", ""), taken.section.name


def read(folder: Path) -> Report:
    """The report that was written to a folder; an empty one if there is none."""
    path = folder / RESULTS
    return msgspec.json.decode(path.read_bytes(), type=Report) if path.exists() else Report([])


def write(report: Report, folder: Path) -> None:
    """Write all three forms."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    (folder / PAGE).write_text(page(report))
    for taken in report.taken:
        for number, chart in enumerate(taken.section.charts, 1):
            (folder / _chart_name(taken, number)).write_text(draw(chart))


def page(report: Report) -> str:
    """The report as a page of Markdown."""
    parts = ["# Benchmarks", "Written by `windlass bench`; not edited by hand.", RULES]
    for taken in report.taken:
        parts += _section(taken)
    return "\n\n".join(parts) + "\n"


def _section(taken: Taken) -> Iterator[str]:
    section = taken.section
    yield f"## {section.title}"
    if taken.quick:
        yield "**A quick run: the numbers mean nothing.**"
    for number, chart in enumerate(section.charts, 1):
        yield f"![{chart.title}]({_chart_name(taken, number)})"
    head = ("", "Windlass", "rounds", "compared with", "ratio", "target", "")
    yield table(head, [_cells(row) for row in section.rows])
    for listing in section.listings:
        yield f"### {listing.title}"
        yield table(("", listing.unit), _lines(listing))
    yield "\n".join(f"- {note}" for note in [*section.notes, _where(taken)])


def _cells(row: Row) -> Sequence[str]:
    verdict = words.verdict(row)
    bold = f"**{verdict}**" if verdict == "MISSED" else verdict
    return (
        row.name,
        words.ours(row),
        words.spread(row),
        words.against(row),
        words.ratio(row),
        words.target(row),
        bold,
    )


def _lines(listing: Listing) -> list[Sequence[str]]:
    return [(f"`{name}`", words.number(value)) for name, value in listing.lines]


def _where(taken: Taken) -> str:
    machine = taken.machine
    store = ", ".join(value if name == "store" else f"{name} {value}" for name, value in machine.store.items())
    load = " ".join(f"{each:.2f}" for each in machine.load)
    busy = " (others were at work: do not rely on these figures)" if machine.busy else ""
    return (
        f"Taken {machine.when} with Windlass {taken.version}, {taken.rounds} round(s), on {machine.cpu}, "
        f"{machine.cores} cores, {machine.system}, {machine.python}; {store}. Load before the start: {load}{busy}."
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _chart_name(taken: Taken, number: int) -> str:
    store, name = _key(taken)
    return f"{store.lower()}-{name}-{number}.svg"
