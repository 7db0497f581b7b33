"""windlass queues, windlass workers."""

from typing import Annotated

import typer

from windlass.cli.ask import YesOption, ask
from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import ago, print_table
from windlass.cli.queues.settings import NameArgument, reset, set_queue
from windlass.cli.queues.wording import record, sentence
from windlass.cli.reach import AppOption, JsonOption, StoreOption, look, reach
from windlass.core.flow.queue import Queue
from windlass.core.moments import SECOND, parse_duration
from windlass.core.status import WAITING
from windlass.store.open import redact

queues = typer.Typer(help="Queues: list, add, set, reset, pause, resume, close, open, purge.", no_args_is_help=True)
workers = typer.Typer(help="The live workers: list.", no_args_is_help=True)

SHOWN = ("pending", "blocked", "running", "failed", "dead")
"""Statuses in a list of queues."""


@queues.command("list")
def list_queues(store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """List queues: whether they are paused or closed, their jobs, and their settings.

    Shows what an operator set beside what the code declares; with --app also queues that are not in the store yet.
    """
    home = look(store, app)
    stored, counts = {queue.name: queue for queue in home.queues.list()}, home.stats.counts().queues
    declared = {name: Queue(name=name, declared=said) for name, said in home._declared.queues.items()}
    found = [queue for _, queue in sorted({**declared, **stored}.items())]
    if as_json:
        print_json([{**_record(queue), "jobs": counts.get(queue.name, {})} for queue in found])
        return
    rows = [_row(queue, counts.get(queue.name, {})) for queue in found]
    print_table(["queue", "state", *SHOWN, "settings"], rows, empty="No queues yet.")


queues.command("set")(set_queue)
queues.command()(reset)


@queues.command()
def add(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Create a queue before its first job, for example to pause it."""
    _tell(reach(store, app, make=True).queues.add(name))


@queues.command()
def pause(
    name: NameArgument,
    length: Annotated[
        str | None, typer.Option("--for", help="Resume by itself after this time, such as 10m.")
    ] = None,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Stop claims from a queue; running jobs continue."""
    seconds = None if length is None else parse_duration(length, "--for") / SECOND
    _tell(reach(store, app).queues.pause(name, seconds))


@queues.command()
def resume(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Resume claims from a queue."""
    _tell(reach(store, app).queues.resume(name))


@queues.command()
def close(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Refuse new jobs in a queue; existing ones still run."""
    _tell(reach(store, app).queues.close(name))


@queues.command("open")
def open_queue(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Accept new jobs in a queue again."""
    _tell(reach(store, app).queues.open(name))


@queues.command()
def purge(name: NameArgument, yes: YesOption = False, store: StoreOption = None, app: AppOption = None) -> None:
    """Cancel every waiting job in a queue, due or not; running jobs continue."""
    home = reach(store, app)
    if not yes:
        counts = home.stats.counts().queues.get(home.queues.get(name).name, {})
        waiting = sum(counts.get(status, 0) for status in WAITING)
        ask(f"cancel the {waiting:,} waiting jobs of {name} in {redact(home.store)}", yes)
    typer.echo(f"{home.queues.purge(name):,} cancelled")


@workers.command("list")
def list_workers(store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """List the live workers."""
    found = look(store, app).workers.list()
    if as_json:
        print_json(found)
        return
    rows = [
        [
            worker.id,
            worker.host,
            "REST" if worker.rest else str(worker.pid),
            f"{worker.processes} × {worker.slots // worker.processes}",
            str(worker.running),
            f"{worker.per_minute:g}",
            ago(worker.beat_at) + (" (stopping)" if worker.draining else ""),
            ", ".join(worker.queues),
        ]
        for worker in found
    ]
    columns = ["worker", "host", "pid", "slots", "running", "per minute", "last beat", "queues"]
    print_table(columns, rows, empty="No workers.", spare=("per minute", "pid"))


def _row(queue: Queue, jobs: dict[str, int]) -> list[str]:
    counts = [str(jobs.get(status, 0)) for status in SHOWN]
    return [queue.name, _state(queue), *counts, _resumes(queue, "", ". ") + sentence(queue)]


def _state(queue: Queue) -> str:
    """Open, unless it is paused or closed."""
    return ", ".join(["paused"] * queue.paused + ["closed"] * queue.closed) or "open"


def _resumes(queue: Queue, before: str, after: str = "") -> str:
    return f"{before}Resumes {ago(queue.paused_until)}{after}" if queue.paused_until else ""


def _tell(queue: Queue) -> None:
    paused = f"paused{_resumes(queue, ', ').lower()}"
    states = [paused] * queue.paused + ["closed to new jobs"] * queue.closed
    typer.echo(f"{queue.name} is {'; '.join(states) or 'open'}")


def _record(queue: Queue) -> dict[str, object]:
    return {
        "name": queue.name,
        "paused": queue.paused,
        "paused_until": queue.paused_until,
        "closed": queue.closed,
        **record(queue.rules),
        "declared": record(queue.declared),
        "changed": record(queue.changed),
    }
