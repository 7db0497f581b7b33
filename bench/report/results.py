"""A report: sections, each with the machine it was taken on; written as JSON, Markdown and SVG."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.report import formatting
from bench.report.figures import Listing, Row, Section
from bench.report.machine import Machine
from bench.report.svg import draw

RESULTS = "results.json"
PAGE = "README.md"
RULES = """A drain ends when the store has recorded the last completion: flushed to disk on SQLite and PostgreSQL, as
configured on Redis (see each section). Default settings, history kept, no special path for no-ops. Windlass and what
it is compared with run alternately; a figure is the median of the rounds, "rounds" are the least and the greatest,
and a ratio is the median of those round by round, so it may differ from the quotient of two figures. A target that
is missed says so. Sections were taken on different machines and days: compare figures within a section only."""


class SectionResult(msgspec.Struct, frozen=True):
    """A section with its machine, time and number of rounds."""

    section: Section
    machine: Machine
    version: str
    rounds: int
    quick: bool = False


class Report(msgspec.Struct, frozen=True):
    """All sections."""

    results: list[SectionResult]

    def merged(self, newer: "Report") -> "Report":
        """Newer sections replace those of the same name and store; the others stay."""
        older = {_key(each): each for each in self.results}
        return Report(list({**older, **{_key(each): each for each in newer.results}}.values()))


def _key(result: SectionResult) -> tuple[str, str]:
    return result.machine.store.get("store", ""), result.section.name


def read(folder: Path) -> Report:
    """The report in a folder, or an empty one."""
    path = folder / RESULTS
    return msgspec.json.decode(path.read_bytes(), type=Report) if path.exists() else Report([])


def write(report: Report, folder: Path) -> None:
    """Write all three forms."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    (folder / PAGE).write_text(page(report))
    for result in report.results:
        for number, chart in enumerate(result.section.charts, 1):
            (folder / _chart_name(result, number)).write_text(draw(chart))


def page(report: Report) -> str:
    """The report as a page of Markdown."""
    parts = ["# Benchmarks", "Written by `make bench`; not edited by hand.", RULES]
    for result in report.results:
        parts += _section(result)
    return "\n\n".join(parts) + "\n"


def _section(result: SectionResult) -> Iterator[str]:
    section = result.section
    yield f"## {_key(result)[0]}: {section.title}"
    if result.quick:
        yield "**A quick run: the numbers mean nothing.**"
    for number, chart in enumerate(section.charts, 1):
        yield f"![{chart.title}]({_chart_name(result, number)})"
    head = ("", "Windlass", "rounds", "compared with", "ratio", "target", "")
    yield table(head, [_cells(row) for row in section.rows])
    for listing in section.listings:
        yield f"### {listing.title}"
        yield table(("", listing.unit), _lines(listing))
    yield "\n".join(f"- {note}" for note in [*section.notes, _where(result)])


def _cells(row: Row) -> Sequence[str]:
    verdict = formatting.verdict(row)
    bold = f"**{verdict}**" if verdict == "MISSED" else verdict
    return (
        row.name,
        formatting.ours(row),
        formatting.spread(row),
        formatting.against(row),
        formatting.ratio(row),
        formatting.target(row),
        bold,
    )


def _lines(listing: Listing) -> list[Sequence[str]]:
    return [(f"`{name}`", formatting.number(value)) for name, value in listing.lines]


def _where(result: SectionResult) -> str:
    machine = result.machine
    store = ", ".join(value if name == "store" else f"{name} {value}" for name, value in machine.store.items())
    load = " ".join(f"{each:.2f}" for each in machine.load)
    rounds = "1 round" if result.rounds == 1 else f"{result.rounds} rounds"
    busy = " (other processes had been running: on an idle machine figures may be higher)" if machine.busy else ""
    return (
        f"Taken {machine.when} with Windlass {result.version}, {rounds}, on {machine.cpu}, "
        f"{machine.cores} cores, {machine.system}, {machine.python}; {store}. Load before the start: {load}{busy}."
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _chart_name(result: SectionResult, number: int) -> str:
    store, name = _key(result)
    return f"{store.lower()}-{name}-{number}.svg"
