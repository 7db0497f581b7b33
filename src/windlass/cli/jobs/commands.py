"""The table of `windlass jobs`."""

import typer

from windlass.cli.jobs.act import cancel, change, delete, retry, run_now
from windlass.cli.jobs.look import list_jobs, show
from windlass.cli.jobs.why import why

jobs = typer.Typer(help="Jobs: list, show, why, cancel, retry, delete, run, change.", no_args_is_help=True)
jobs.command("list")(list_jobs)
jobs.command()(show)
jobs.command()(why)
jobs.command()(cancel)
jobs.command()(retry)
jobs.command()(delete)
jobs.command("run")(run_now)
jobs.command()(change)
