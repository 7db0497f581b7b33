"""windlass bench: enqueue, drain and latency on a user's own store."""

import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from windlass.bench.measurement import Figure, Measurement
from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import print_table
from windlass.cli.reach import AppOption, JsonOption, OwnStoreOption, reach
from windlass.store.open import redact
from windlass.version import __version__

COLUMNS = ["measured", "median", "lowest", "highest"]


def bench(
    wanted: Annotated[
        list[Measurement] | None, typer.Argument(metavar="[WHAT]...", help="enqueue, drain, latency; else all.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            min=100,
            max=1_000_000,
            help="Jobs per round of bulk enqueue and drain; single enqueues use 1/10 of it, latency 1/100.",
        ),
    ] = 10_000,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of each.")] = 3,
    processes: Annotated[int, typer.Option(min=1, help="Runners of the worker.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="Slots per runner.")] = 10,
    store: OwnStoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure enqueue, drain and latency on your store.

    The jobs are no-ops in a queue of their own, `windlass-bench`.
    They are deleted at the end; jobs of other queues stay as they are.

    A worker process with default settings runs them.
    Like any worker, it also does the coordinator's duties on this store.
    """
    # Imported here: other commands start faster without them.
    from windlass.bench.measure import Plan, measure
    from windlass.cli.output.progress import progress

    address = reach(store, app, make=True, through_server=False).store
    flags = ("--processes", str(processes), "--concurrency", str(concurrency))
    chosen = tuple(dict.fromkeys(wanted or Measurement))
    # As with Ctrl-C: the worker ends with this process, and the jobs are deleted.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="windlass-bench-") as folder, progress(len(chosen)) as (say, complete):
        plan = Plan(wanted=chosen, address=address, folder=Path(folder), jobs=jobs, rounds=rounds, worker_flags=flags)
        for found in measure(plan, say):
            figures += found
            with complete():
                pass
    if as_json:
        head = {"version": __version__, "store": redact(address), "jobs": jobs, "processes": processes}
        print_json({**head, "concurrency": concurrency, "figures": figures})
        return
    print_table(COLUMNS, map(_row, figures), empty="Nothing was measured.")


def _row(figure: Figure) -> list[str]:
    shown = (figure.median, min(figure.rounds), max(figure.rounds))
    return [figure.name, *(f"{number(value)} {figure.unit}" for value in shown)]


def number(value: float) -> str:
    """With at least three significant digits: 12,345 or 12.3 or 0.12."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
