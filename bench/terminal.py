"""A run of the bench in a terminal: progress, then the figures."""

from rich.table import Table

from bench.report import formatting, results
from bench.report.figures import Section
from bench.report.results import Report, SectionResult
from bench.run import Plan, run
from windlass.cli.output.progress import progress
from windlass.cli.output.tables import console, plain

VERDICTS = {"met": "green", "MISSED": "bold red", "not run": "yellow"}


def measure(plan: Plan, *, quiet: bool) -> Report:
    """Run the plan; each section is shown and written when it is complete, so that Ctrl-C loses only the last."""
    done = []
    with progress(len(plan.wanted)) as (say, complete):
        for result in run(plan, say):
            done.append(result)
            results.write(Report(done), plan.out)
            with complete():
                if not quiet:
                    _show(result)
    return Report(done)


def _show(result: SectionResult) -> None:
    out, section = console(), result.section
    machine = result.machine
    out.print()
    out.print(plain(section.title, "bold"))
    if result.quick:
        out.print(plain("A quick run: the numbers mean nothing.", "yellow"))
    elif machine.busy:
        out.print(plain(f"The machine was busy before the start (load {machine.load[0]:.2f}).", "yellow"))
    out.print(_table(section))
    for listing in section.listings:
        out.print(plain(f"{listing.title} ({listing.unit})", "bold"))
        for name, value in listing.lines:
            out.print(plain(f"  {formatting.number(value):>8}  {name}"))


def _table(section: Section) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("", "Windlass", "compared with", "ratio", "target", ""):
        table.add_column(name, justify="right" if name in ("Windlass", "ratio", "target") else "left")
    for row in section.rows:
        verdict = formatting.verdict(row)
        cells = (
            row.name,
            formatting.ours(row),
            formatting.against(row),
            formatting.ratio(row),
            formatting.target(row),
        )
        table.add_row(*map(plain, cells), plain(verdict, VERDICTS.get(verdict, "")))
    return table
