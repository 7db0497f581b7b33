"""windlass jobs, windlass dead."""

from collections.abc import Sequence
from typing import Annotated

import typer

from windlass.cli.jobs.relations import place_in, relations_of
from windlass.cli.jobs.show import describe, row_of, what_of
from windlass.cli.jobs.why import print_first
from windlass.cli.output import ago, print_json, print_table
from windlass.cli.reach import AppOption, JsonOption, StoreOption, reach
from windlass.client.app import App
from windlass.core.jobs.job import Job
from windlass.core.status import WAITING
from windlass.errors import InvalidOption
from windlass.store.open import redact

jobs = typer.Typer(help="Look at jobs and act on them.", no_args_is_help=True)
dead = typer.Typer(help="Dead letters: jobs that gave up.", no_args_is_help=True)

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The job's id, or its beginning or end: 4 characters or more.")
]
QueueOption = Annotated[str | None, typer.Option("--queue", help="Only this queue.")]
TypeOption = Annotated[str | None, typer.Option("--type", help="Only this type.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@jobs.command("list")
def list_jobs(
    status: Annotated[list[str] | None, typer.Option("--status", help="Only this; may be repeated.")] = None,
    type_: TypeOption = None,
    queue: QueueOption = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag.")] = None,
    parent: Annotated[str | None, typer.Option(help="Only the children of this job.")] = None,
    chain: Annotated[
        str | None, typer.Option(metavar="ID", help="The links of this job's chain, in their order; and no other.")
    ] = None,
    limit: LimitOption = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on after this id.")] = None,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs, newest first."""
    home = reach(store, app)
    if chain is not None:
        _refuse_beside_chain(status=status, type=type_, queue=queue, tag=tag, parent=parent, cursor=cursor)
        _list_chain(home, chain, limit, as_json)
        return
    found: list[Job] = []
    while True:
        page = home.jobs.list(
            status=status or (),
            type=type_,
            queue=queue,
            tag=tag,
            parent=parent,
            limit=limit - len(found),
            cursor=cursor,
        )
        found += page.items
        cursor = page.next_cursor
        # If matches are rare a page may be short, or empty.
        if cursor is None or len(found) >= limit:
            break
    if as_json:
        print_json(found)
        return
    _print_jobs(found, empty=f"No jobs match in {redact(home.store)}.")
    if cursor:
        typer.echo(f"\nMore: --cursor {cursor}")


def _print_jobs(found: Sequence[Job], empty: str) -> None:
    columns = ["id", "status", "type", "queue", "attempt", "created", "what"]
    print_table(columns, [row_of(job) for job in found], empty=empty, spare=("queue", "attempt"))


def _refuse_beside_chain(**filters: object) -> None:
    for name, value in filters.items():
        if value:
            raise InvalidOption(f"--{name}", "cannot be given together with --chain, which lists all of its links")


def _list_chain(home: App, id_: str, limit: int, as_json: bool) -> None:
    """A whole chain, from any of its links."""
    links = home.jobs.links(home.jobs.find(id_), limit=limit)
    if as_json:
        print_json(links.jobs)
        return
    _print_jobs(links.jobs, empty="")
    if not (links.begins and links.ends):
        typer.echo(f"\n{id_} is {place_in(links)}; --limit goes further, older ones may not be kept any more")


@jobs.command()
def show(id_: IdArgument, store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """Show all details of a job; of a payload or result in the blob store, its size and digest.

    For a waiting job it ends with the main reason why it waits.
    """
    home = reach(store, app)
    job = home.jobs.get(home.jobs.find(id_), fetch=False)
    if as_json:
        print_json(job)
    else:
        describe(job, relations_of(home, job))
        if job.status in WAITING:
            print_first(home.jobs.why(job.id))


@jobs.command()
def cancel(
    id_: IdArgument,
    reason: Annotated[str, typer.Option(help="Kept with the job.")] = "cancelled by an operator",
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Cancel a waiting job, or ask a running one to stop."""
    home = reach(store, app)
    job = home.jobs.cancel(home.jobs.find(id_), reason)
    asked = f"{job.id} was asked to stop; a def handler must look at ctx.cancelled, so it may still complete"
    typer.echo(asked if job.cancel_requested and not job.finished else f"{job.id} is {job.status}")


@jobs.command()
def retry(id_: IdArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Run a dead, cancelled, completed or failed job again, now, with a new budget of attempts."""
    home = reach(store, app)
    job = home.jobs.retry(home.jobs.find(id_))
    typer.echo(f"{job.id} is {job.status}; the next attempt is number {job.attempt + 1}")


@jobs.command()
def delete(id_: IdArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Delete a finished job."""
    home = reach(store, app)
    found = home.jobs.find(id_)
    home.jobs.delete(found)
    typer.echo(f"{found} is deleted")


@dead.command("list")
def list_dead(
    type_: TypeOption = None,
    queue: QueueOption = None,
    limit: LimitOption = 50,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List dead jobs, newest first."""
    home = reach(store, app)
    page = home.jobs.list(status="dead", type=type_, queue=queue, limit=limit)
    if as_json:
        print_json(page.items)
        return
    rows = [[job.id, job.type, job.queue, str(job.attempt), ago(job.finished_at), what_of(job)] for job in page.items]
    print_table(
        ["id", "type", "queue", "attempt", "died", "why"],
        rows,
        empty=f"No dead jobs in {redact(home.store)}.",
        spare=("queue", "attempt"),
    )
    if rows:
        typer.echo("\nwindlass jobs show ID has the traceback")


@dead.command("retry")
def retry_dead(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of dead jobs.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every dead job that matches.")] = False,
    type_: TypeOption = None,
    queue: QueueOption = None,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Run dead jobs again, with a new budget of attempts."""
    if bool(ids) == everything:
        raise typer.BadParameter("name ids, or say --all")
    home = reach(store, app)
    for id_ in ids or ():
        home.jobs.retry(id_)
    done = len(ids or ()) or home.jobs.retry_all(status="dead", type=type_, queue=queue)
    typer.echo(f"{done} revived")


@dead.command("purge")
def purge_dead(
    type_: TypeOption = None,
    queue: QueueOption = None,
    yes: YesOption = False,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Delete dead jobs for good."""
    home = reach(store, app)
    if not yes:
        typer.confirm(f"Drop the dead jobs that match in {redact(home.store)} for good?", abort=True)
    typer.echo(f"{home.jobs.delete_all(status='dead', type=type_, queue=queue)} dropped")
