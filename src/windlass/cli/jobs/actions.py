"""windlass jobs run, windlass jobs change: change the time, priority, payload or queue of waiting jobs."""

from typing import Annotated

import typer

from windlass.cli.jobs.commands import IdArgument
from windlass.cli.output import ago, print_json
from windlass.cli.parse import moment, parse_object, seconds
from windlass.cli.reach import AppOption, JsonOption, StoreOption, reach
from windlass.core.jobs.job import Job


def run_now(id_: IdArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Run a scheduled or failed job now instead of at its time."""
    home = reach(store, app)
    job = home.jobs.run_now(home.jobs.find(id_))
    typer.echo(f"{job.id} is {job.status}")


def change(
    id_: IdArgument,
    priority: Annotated[int | None, typer.Option(help="-32768 to 32767, higher first.")] = None,
    run_at: Annotated[
        str | None, typer.Option(help="When to run it, such as 2026-01-31T09:00 (UTC unless it says otherwise).")
    ] = None,
    delay: Annotated[str | None, typer.Option(help="Run it in so long from now, such as 60s or 5m.")] = None,
    payload: Annotated[str | None, typer.Option(help="Its new arguments, all of them, as a JSON object.")] = None,
    queue: Annotated[str | None, typer.Option(help="Move it to this queue.")] = None,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a waiting job; options that are not given stay."""
    home = reach(store, app)
    job = home.jobs.change(
        home.jobs.find(id_),
        priority=priority,
        run_at=None if run_at is None else moment(run_at, "--run-at"),
        delay=seconds(delay, "--delay"),
        payload=None if payload is None else parse_object(payload, "payload"),
        queue=queue,
    )
    if payload is not None and job.type not in home.registry:
        typer.echo("note: the arguments were not checked; --app module:object does that", err=True)
    if as_json:
        print_json(job)
    else:
        typer.echo(_sentence(job))


def _sentence(job: Job) -> str:
    due = f", due {ago(job.run_at)}" if job.status in ("scheduled", "failed") else ""
    return f"{job.id} is {job.status} in queue {job.queue}, priority {job.priority}{due}"
