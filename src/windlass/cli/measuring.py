"""A run of the bench, as a terminal sees it: what is going on, then what was measured."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from windlass.bench import report, words
from windlass.bench.figures import Section
from windlass.bench.report import Report, Taken
from windlass.bench.run import Plan, run
from windlass.cli.output import console, plain

VERDICTS = {"met": "green", "MISSED": "bold red", "not run": "yellow"}


def measure(plan: Plan, *, quiet: bool) -> Report:
    """Run it; each section is shown and written as soon as it is complete, so that Ctrl-C loses only the last."""
    done = []
    with _progress(len(plan.wanted)) as (say, complete):
        for taken in run(plan, say):
            done.append(taken)
            report.write(Report(done), plan.out)
            with complete():
                if not quiet:
                    _show(taken)
    return Report(done)


@contextmanager
def _progress(total: int) -> Iterator[tuple[Callable[[str], None], Callable[[], AbstractContextManager[None]]]]:
    """What is going on, on standard error, so that standard output stays what was asked for.

    Two calls: to say what is done now, and to complete one part, with the line out of the way of what is shown.
    """
    if not sys.stderr.isatty():
        yield lambda text: typer.echo(f"… {text}", err=True), nullcontext
        return
    columns = (SpinnerColumn(), BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=total)

        @contextmanager
        def complete() -> Iterator[None]:
            bar.advance(task)
            bar.stop()
            yield
            bar.start()

        yield lambda text: bar.update(task, description=text), complete


def _show(taken: Taken) -> None:
    out, section = console(), taken.section
    machine = taken.machine
    out.print()
    out.print(plain(section.title, "bold"))
    if taken.quick:
        out.print(plain("A quick run: the numbers mean nothing.", "yellow"))
    elif machine.busy:
        out.print(plain(f"The machine was busy before the start (load {machine.load[0]:.2f}).", "yellow"))
    out.print(_table(section))
    for listing in section.listings:
        out.print(plain(f"{listing.title} ({listing.unit})", "bold"))
        for name, value in listing.lines:
            out.print(plain(f"  {words.number(value):>8}  {name}"))


def _table(section: Section) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("", "Windlass", "compared with", "ratio", "target", ""):
        table.add_column(name, justify="right" if name in ("Windlass", "ratio", "target") else "left")
    for row in section.rows:
        verdict = words.verdict(row)
        cells = (row.name, words.ours(row), words.against(row), words.ratio(row), words.target(row))
        table.add_row(*map(plain, cells), plain(verdict, VERDICTS.get(verdict, "")))
    return table
