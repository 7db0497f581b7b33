"""windlass bench: measure, show, write down."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from windlass.bench import report, words
from windlass.bench.figures import Section
from windlass.bench.report import Report, Taken
from windlass.bench.run import Measurement, Plan, run
from windlass.cli.output import console, plain, print_json
from windlass.errors import ConfigError

PUBLISHED = Path("docs/benchmarks")
VERDICTS = {"met": "green", "MISSED": "bold red", "not run": "yellow"}


def bench(
    wanted: Annotated[
        list[Measurement] | None, typer.Argument(metavar="[WHAT]...", help="Which of them; without any, all.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Where, {run} standing for a number: sqlite:////mnt/disk/{run}.db. Default: in --out."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="See that it works; the figures mean nothing.")] = False,
    rounds: Annotated[int | None, typer.Option(min=1, max=100, help="Rounds of each, instead of 3.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results.json, README.md and charts.")] = Path("bench/out"),
    peers_python: Annotated[
        Path | None, typer.Option(help="A Python that has huey and dbos; without it they are not run.")
    ] = None,
    publish: Annotated[bool, typer.Option("--publish", help="Write into docs/benchmarks too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Measure Windlass against the bare driver and its peers: drain, enqueue, latency, growth, memory, profile."""
    if quick and publish:
        raise ConfigError("--quick figures mean nothing: they are not published")
    plan = Plan(
        wanted=list(dict.fromkeys(wanted or Measurement)),
        store=store,
        quick=quick,
        rounds=rounds,
        out=out,
        peers_python=peers_python,
    )
    # As Ctrl-C does it: the workers that are being measured end with us.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    made = Report(_measure(plan, quiet=as_json))
    if publish:
        report.write(report.read(PUBLISHED).merged(made), PUBLISHED)
    if as_json:
        print_json(made)
        return
    where = f"{out} and {PUBLISHED}" if publish else str(out)
    console().print(f"JSON, Markdown and charts: {where}", markup=False)


def _measure(plan: Plan, *, quiet: bool) -> list[Taken]:
    """Run it; each section is shown and written as soon as it is complete, so that Ctrl-C loses only the last."""
    done = []
    with _progress(len(plan.wanted)) as (say, complete):
        for taken in run(plan, say):
            done.append(taken)
            report.write(Report(done), plan.out)
            with complete():
                if not quiet:
                    _show(taken)
    return done


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
