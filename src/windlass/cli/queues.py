"""windlass queues, windlass workers."""

from typing import Annotated

import msgspec
import typer

from windlass.cli.output import ago, print_json, print_table
from windlass.cli.reach import AppOption, JsonOption, StoreOption, reach
from windlass.core.moments import SECOND, parse_duration, show_duration
from windlass.core.queue import Queue
from windlass.core.retry import Exponential
from windlass.core.status import FINISHED

queues = typer.Typer(help="Look at queues, change them, pause them.", no_args_is_help=True)
workers = typer.Typer(help="Who works.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The queue.")]


@queues.command("list")
def list_queues(store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """List queues with their settings and jobs."""
    home = reach(store, app)
    found, counts = home.queues.list(), home.stats.counts().queues
    if as_json:
        print_json([{**_record(queue), "jobs": counts.get(queue.name, {})} for queue in found])
        return
    rows = [_row(queue, counts.get(queue.name, {})) for queue in found]
    print_table(["queue", "state", "pending", "running", "failed", "dead", "settings"], rows, empty="No queues yet.")


@queues.command("set")
def set_queue(
    name: NameArgument,
    max_attempts: Annotated[int | None, typer.Option(help="Budget of attempts for jobs that bring none.")] = None,
    retry_base: Annotated[str | None, typer.Option(help="First wait of the back-off, such as 60s.")] = None,
    retry_cap: Annotated[str | None, typer.Option(help="Longest wait, such as 1h.")] = None,
    timeout: Annotated[str | None, typer.Option(help="Longest time of an attempt, such as 300s.")] = None,
    keep_completed: Annotated[str | None, typer.Option(help="Retention of completed jobs, such as 7d.")] = None,
    keep_cancelled: Annotated[str | None, typer.Option(help="Retention of cancelled jobs.")] = None,
    keep_dead: Annotated[str | None, typer.Option(help="Retention of dead jobs.")] = None,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Change a queue; replaces an earlier change and wins over the code. Without options: undo the change."""
    kept = {"completed": keep_completed, "cancelled": keep_cancelled, "dead": keep_dead}
    waits = {"base": retry_base, "cap": retry_cap}
    given = {key: parse_duration(text, f"--retry-{key}") / SECOND for key, text in waits.items() if text is not None}
    queue = reach(store, app).queues.set(
        name,
        max_attempts=max_attempts,
        retry=msgspec.structs.replace(Exponential(), **given) if given else None,
        timeout=None if timeout is None else parse_duration(timeout, "--timeout") / SECOND,
        retention={
            key: parse_duration(text, f"--keep-{key}") / SECOND for key, text in kept.items() if text is not None
        },
    )
    typer.echo(f"{queue.name}: {_settings(queue)}")


@queues.command()
def pause(
    name: NameArgument,
    length: Annotated[str | None, typer.Option("--for", help="Resume by itself after so long, such as 10m.")] = None,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Claim no more from a queue; running jobs go on."""
    seconds = None if length is None else parse_duration(length, "--for") / SECOND
    queue = reach(store, app).queues.pause(name, seconds)
    typer.echo(f"{queue.name} is paused" + (f", resumes {ago(queue.paused_until)}" if queue.paused_until else ""))


@queues.command()
def resume(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Claim from a queue again."""
    typer.echo(f"{reach(store, app).queues.resume(name).name} is open")


@workers.command("list")
def list_workers(store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """List the workers that are alive."""
    found = reach(store, app).workers.list()
    if as_json:
        print_json(found)
        return
    rows = [
        [
            worker.id,
            worker.host,
            str(worker.pid),
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
    state = "open"
    if queue.paused:
        state = "paused" + (f", resumes {ago(queue.paused_until)}" if queue.paused_until else "")
    shown = [str(jobs.get(status, 0)) for status in ("pending", "running", "failed", "dead")]
    return [queue.name, state, *shown, _settings(queue)]


def _settings(queue: Queue) -> str:
    """What holds, and whether an operator changed it."""
    rules = queue.rules
    kept = ", ".join(f"{status} {show_duration(rules.retention[status])}" for status in sorted(FINISHED))
    changed = " (changed by an operator)" if queue.changed != type(queue.changed)() else ""
    timeout = f"timeout {show_duration(rules.timeout)}" if rules.timeout else "no timeout"
    return f"{rules.max_attempts} attempts, {timeout}, unless the task says otherwise; keep {kept}{changed}"


def _record(queue: Queue) -> dict[str, object]:
    rules = queue.rules
    return {
        "name": queue.name,
        "paused": queue.paused,
        "paused_until": queue.paused_until,
        "max_attempts": rules.max_attempts,
        "retry": rules.retry,
        "timeout": rules.timeout / SECOND or None,
        "retention": {str(status): micros / SECOND for status, micros in rules.retention.items()},
        "declared": queue.declared,
        "changed": queue.changed,
    }
