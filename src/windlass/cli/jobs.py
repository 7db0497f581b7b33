"""windlass enqueue, windlass jobs, windlass dead."""

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from windlass.cli.output import ago, clock, console, plain, print_json, print_table, styled
from windlass.cli.reach import AppOption, JsonOption, StoreOption, reach
from windlass.client.app import App
from windlass.client.options import check_options
from windlass.core.codec import check_json, check_size, encode
from windlass.core.ids import new_id
from windlass.core.job import Job, NewJob
from windlass.core.moments import SECOND, parse_duration, show_duration
from windlass.core.names import check_name
from windlass.errors import InvalidPayload

jobs = typer.Typer(help="Look at jobs and act on them.", no_args_is_help=True)
dead = typer.Typer(help="Dead letters: jobs that gave up.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(help="The job's id.")]
QueueOption = Annotated[str | None, typer.Option("--queue", help="Only this queue.")]
TypeOption = Annotated[str | None, typer.Option("--type", help="Only this type.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def enqueue(
    type_: Annotated[str, typer.Argument(metavar="TYPE", help="The task's type.")],
    payload: Annotated[
        str, typer.Argument(help="Its arguments as a JSON object, such as '{\"user_id\": 42}'.")
    ] = "{}",
    queue: Annotated[str | None, typer.Option(help="The queue; default: the task's, else `default`.")] = None,
    priority: Annotated[int | None, typer.Option(help="-32768 to 32767, higher first.")] = None,
    delay: Annotated[str | None, typer.Option(help="Wait so long, such as 60s or 5m.")] = None,
    idempotency_key: Annotated[str | None, typer.Option(help="One live job per queue and key.")] = None,
    max_attempts: Annotated[int | None, typer.Option(help="Give up after so many failures.")] = None,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hand in a job."""
    options: dict[str, Any] = {
        "queue": queue,
        "priority": priority,
        "delay": None if delay is None else parse_duration(delay, "--delay") / SECOND,
        "idempotency_key": idempotency_key,
        "max_attempts": max_attempts,
    }
    home = reach(store, app)
    job = make_job(home, type_, payload, {name: value for name, value in options.items() if value is not None})
    handle = home.enqueue_many([job])[0]
    if as_json:
        print_json({"id": handle.id, "existing": handle.existing})
    else:
        typer.echo(f"{handle.id}{' (stood already)' if handle.existing else ''}")


def make_job(home: App, type_: str, payload: str, options: dict[str, Any]) -> NewJob:
    """A job from text; with an app at hand its arguments are checked against the task's."""
    arguments = parse_payload(payload)
    check_name(type_, "type")
    fields = check_options(options)
    if len(home.registry.types):
        definition = home.registry.get(type_)
        fields = {**definition.defaults, **fields}
        text = definition.signature.check(arguments)
    else:
        check_json(arguments, "payload")
        text = check_size(encode(arguments, "payload"), "payload")
    return NewJob(id=new_id(), type=type_, payload=text, **fields)


def parse_payload(text: str) -> dict[str, Any]:
    """A JSON object, strictly: no NaN, no key twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise InvalidPayload("payload", "has a key twice")
        return found

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except RecursionError:
        raise InvalidPayload("payload", "is nested too deeply") from None
    except ValueError as error:
        raise InvalidPayload("payload", f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidPayload("payload", f"must be a JSON object of arguments, not {type(value).__name__}")
    return value


@jobs.command("list")
def list_jobs(
    status: Annotated[list[str] | None, typer.Option("--status", help="Only this; may be repeated.")] = None,
    type_: TypeOption = None,
    queue: QueueOption = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag.")] = None,
    limit: LimitOption = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on after this id.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, newest first."""
    page = reach(store).jobs.list(status=status or (), type=type_, queue=queue, tag=tag, limit=limit, cursor=cursor)
    if as_json:
        print_json(page.items)
        return
    print_table(
        ["id", "type", "queue", "status", "attempt", "created", "what"],
        [_row(job) for job in page.items],
        empty="No jobs match.",
    )
    if page.next_cursor:
        typer.echo(f"\nMore: --cursor {page.next_cursor}")


@jobs.command()
def show(id_: IdArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show all that is known of a job."""
    job = reach(store).jobs.get(id_)
    if as_json:
        print_json(job)
    else:
        _describe(job)


@jobs.command()
def cancel(
    id_: IdArgument,
    reason: Annotated[str, typer.Option(help="Kept with the job.")] = "cancelled by an operator",
    store: StoreOption = None,
) -> None:
    """Call off a waiting job, or ask a running one to stop."""
    job = reach(store).jobs.cancel(id_, reason)
    typer.echo(f"{job.id} was asked to stop" if job.cancel_requested else f"{job.id} is {job.status}")


@jobs.command()
def retry(id_: IdArgument, store: StoreOption = None) -> None:
    """Run a dead, cancelled, completed or failed job again, now, with a fresh budget."""
    job = reach(store).jobs.retry(id_)
    typer.echo(f"{job.id} is {job.status}; the next attempt is number {job.attempt + 1}")


@jobs.command()
def delete(id_: IdArgument, store: StoreOption = None) -> None:
    """Drop a finished job."""
    reach(store).jobs.delete(id_)
    typer.echo(f"{id_} is deleted")


@dead.command("list")
def list_dead(
    type_: TypeOption = None,
    queue: QueueOption = None,
    limit: LimitOption = 50,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List dead jobs, newest first."""
    page = reach(store).jobs.list(status="dead", type=type_, queue=queue, limit=limit)
    if as_json:
        print_json(page.items)
        return
    rows = [[job.id, job.type, job.queue, str(job.attempt), ago(job.finished_at), _what(job)] for job in page.items]
    print_table(["id", "type", "queue", "attempt", "died", "why"], rows, empty="No dead jobs.")


@dead.command("retry")
def retry_dead(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of dead jobs.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every dead job that matches.")] = False,
    type_: TypeOption = None,
    queue: QueueOption = None,
    store: StoreOption = None,
) -> None:
    """Run dead jobs again, with a fresh budget."""
    if bool(ids) == everything:
        raise typer.BadParameter("name ids, or say --all")
    home = reach(store)
    for id_ in ids or ():
        home.jobs.retry(id_)
    done = len(ids or ()) or home.jobs.retry_all(status="dead", type=type_, queue=queue)
    typer.echo(f"{done} revived")


@dead.command("purge")
def purge_dead(
    type_: TypeOption = None, queue: QueueOption = None, yes: YesOption = False, store: StoreOption = None
) -> None:
    """Drop dead jobs for good."""
    home = reach(store)
    if not yes:
        typer.confirm("Drop all dead jobs that match?", abort=True)
    typer.echo(f"{home.jobs.delete_all(status='dead', type=type_, queue=queue)} dropped")


def _row(job: Job) -> list[str]:
    return [job.id, job.type, job.queue, str(job.status), str(job.attempt), ago(job.created_at), _what(job)]


def _what(job: Job) -> str:
    """The one thing to know about a job."""
    if job.error is not None and job.status != "completed":
        text = f"{job.error.type}: {job.error.message}" + (f" ({job.reason})" if job.reason else "")
    elif job.reason:
        text = job.reason
    elif job.progress is not None:
        text = _progress(job)
    else:
        text = ""
    if job.status in ("scheduled", "failed"):
        text = f"due {ago(job.run_at)}" + (f"; {text}" if text else "")
    return text if len(text) <= 80 else text[:79] + "…"


def _progress(job: Job) -> str:
    assert job.progress is not None
    done, total, note = job.progress.done, job.progress.total, job.progress.note
    share = f"{done:g} of {total:g}" if total is not None else f"{done:g}"
    return f"{share}{', ' + note if note else ''}"


def _describe(job: Job) -> None:
    out = console()
    out.print(plain(job.type, "bold"), styled(job.status), job.id)
    facts = {
        "queue": job.queue,
        "reason": job.reason,
        "payload": json.dumps(job.payload, ensure_ascii=False),
        "result": json.dumps(job.result, ensure_ascii=False) if job.status == "completed" else None,
        "priority": str(job.priority),
        "attempts": f"{job.attempt} made; {job.failures} failures and {job.crashes} crashes of {job.max_attempts}"
        f" allowed; {job.hand_backs} handed back, {job.rescues} rescued, {job.suspicions} in a runner that crashed,"
        f" {job.snoozes} snoozed",
        "created": clock(job.created_at),
        "due": clock(job.run_at),
        "finished": clock(job.finished_at) if job.finished_at else None,
        "worker": job.worker,
        "lease ends": ago(job.lease_expires_at) if job.lease_expires_at else None,
        "key": job.idempotency_key,
        "tags": ", ".join(job.tags) or None,
        "progress": _progress(job) if job.progress else None,
        "asked to stop": "yes" if job.cancel_requested and not job.finished else None,
    }
    for name, value in facts.items():
        if value is not None:
            out.print(Text.assemble((f"  {name:14}", "dim"), plain(value)))
    _describe_attempts(job)
    if job.error is not None and job.error.traceback:
        out.print("\n[bold]Last error[/]")
        out.print(plain(job.error.traceback.rstrip()))
    if job.logs:
        out.print("\n[bold]Log[/]")
        for line in job.logs:
            out.print(Text.assemble((f"  {clock(line.at)} #{line.attempt} ", "dim"), plain(line.text)))


def _describe_attempts(job: Job) -> None:
    if not job.attempts:
        return
    console().print("\n[bold]Attempts[/]")
    for each in job.attempts:
        took = ""
        if each.started_at and each.ended_at:
            took = f" after {show_duration(round((each.ended_at - each.started_at).total_seconds() * SECOND))}"
        error = f": {each.error.type}: {each.error.message}" if each.error else ""
        line = (
            f"#{each.attempt} {each.outcome}{took} on {each.worker or '-'}, claimed {clock(each.claimed_at)}{error}"
        )
        console().print(plain("  " + line))
