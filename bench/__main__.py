"""`python -m bench`: measure, and show and write the figures."""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from bench.report import results
from bench.run import Measurement, Plan
from bench.terminal import measure
from windlass.cli.main import main
from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import console
from windlass.errors import ConfigError

PUBLISHED = Path("docs/benchmarks")

cli = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@cli.command()
def bench(
    wanted: Annotated[
        list[Measurement] | None, typer.Argument(metavar="[WHAT]...", help="Which of them; without any, all.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where, {run} standing for a number: sqlite:////mnt/disk/{run}.db (default: in --out), "
            "postgresql://user@host/{run}, redis://host/{run}; postgres or redis: a server of its own."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="See that it works; the figures mean nothing.")] = False,
    rounds: Annotated[int | None, typer.Option(min=1, max=100, help="Rounds of each, instead of 3.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results.json, README.md and charts.")] = Path("bench/out"),
    peers: Annotated[
        Path | None, typer.Option(help="A folder with an environment for each peer; without it they are not run.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Also with 10,000,000 finished jobs.")] = False,
    publish: Annotated[bool, typer.Option("--publish", help="Write into docs/benchmarks too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Measure Windlass against the bare driver and its peers: drain, enqueue, latency, flow, chains, graphs …"""
    if quick and publish:
        raise ConfigError("--quick figures mean nothing: they are not published")
    plan = Plan(
        wanted=list(dict.fromkeys(wanted or Measurement)),
        store=store,
        quick=quick,
        rounds=rounds,
        out=out,
        peers=peers,
        full=full,
    )
    # Like Ctrl-C: the measured workers end with this process.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    made = measure(plan, quiet=as_json)
    if publish:
        results.write(results.read(PUBLISHED).merged(made), PUBLISHED)
    if as_json:
        print_json(made)
        return
    where = f"{out} and {PUBLISHED}" if publish else str(out)
    console().print(f"JSON, Markdown and charts: {where}", markup=False)


if __name__ == "__main__":
    main(cli)
