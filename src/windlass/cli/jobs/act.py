"""windlass jobs cancel, retry, delete: by id, or by filter; windlass jobs run, change."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from windlass.cli.ask import YesOption, ask
from windlass.cli.jobs.filters import (
    AllOption,
    IdArgument,
    IdsArgument,
    ParentOption,
    QueueOption,
    ScheduleOption,
    StatusOption,
    TagOption,
    TenantOption,
    TypeOption,
    matching,
)
from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import ago
from windlass.cli.parse import moment, parse_object, seconds
from windlass.cli.reach import AppOption, JsonOption, StoreOption, is_server, reach
from windlass.client.app import App
from windlass.core.jobs.job import Job
from windlass.core.status import FINISHED, LIVE, RETRYABLE, Status
from windlass.store.open import redact

PayloadOption = Annotated[str | None, typer.Option(help="All its arguments, new and unchanged, as a JSON object.")]


def cancel(
    ids: IdsArgument = None,
    reason: Annotated[str, typer.Option(help="Kept with the job.")] = "cancelled by an operator",
    status: StatusOption = None,
    type_: TypeOption = None,
    queue: QueueOption = None,
    tenant: TenantOption = None,
    tag: TagOption = None,
    parent: ParentOption = None,
    schedule: ScheduleOption = None,
    everything: AllOption = False,
    yes: YesOption = False,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Cancel waiting jobs, and ask running ones to stop: by id, or all that match."""
    filters = {"status": status, "type": type_, "queue": queue, "tenant": tenant, "tag": tag, "parent": parent}
    wanted = matching(ids, everything, LIVE, LIVE, **filters, schedule=schedule)
    home = reach(store, app)
    if wanted is not None:
        if _agreed(home, "cancel", wanted, yes):
            typer.echo(f"{home.jobs.cancel_all(reason=reason, **wanted):,} cancelled, or asked to stop")
        return
    for id_ in ids or ():
        job = home.jobs.cancel(home.jobs.find(id_), reason)
        asked = f"{job.id} was asked to stop; a def handler must check ctx.cancelled, so it may still complete"
        typer.echo(asked if job.cancel_requested and not job.finished else f"{job.id} is {job.status}")


def retry(
    ids: IdsArgument = None,
    payload: PayloadOption = None,
    status: StatusOption = None,
    type_: TypeOption = None,
    queue: QueueOption = None,
    tenant: TenantOption = None,
    tag: TagOption = None,
    parent: ParentOption = None,
    schedule: ScheduleOption = None,
    everything: AllOption = False,
    yes: YesOption = False,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Run dead, cancelled, completed or failed jobs again, now, with a new budget: by id, or all that match.

    A filter matches only dead and failed jobs, unless --status is given.
    """
    filters = {"status": status, "type": type_, "queue": queue, "tenant": tenant, "tag": tag, "parent": parent}
    wanted = matching(ids, everything, RETRYABLE, {Status.DEAD, Status.FAILED}, **filters, schedule=schedule)
    home = reach(store, app)
    if wanted is not None:
        check_one(ids, payload)
        if _agreed(home, "retry", wanted, yes):
            typer.echo(f"{home.jobs.retry_all(**wanted):,} retried")
        return
    for job in retry_each(home, ids or [], payload):
        typer.echo(f"{job.id} is {job.status}; the next attempt is number {job.attempt + 1}")


def retry_each(home: App, ids: list[str], payload: str | None) -> Iterator[Job]:
    """Retry jobs by id, one after the other; a single one may get another payload."""
    check_one(ids, payload)
    arguments = None if payload is None else parse_object(payload, "payload")
    for id_ in ids:
        job = home.jobs.retry(home.jobs.find(id_), payload=arguments)
        if arguments is not None:
            _note_unchecked(home, job)
        yield job


def check_one(ids: list[str] | None, payload: str | None) -> None:
    """A payload is for one job."""
    if payload is not None and len(ids or ()) != 1:
        raise typer.BadParameter("--payload is for one job: name its id")


def delete(
    ids: IdsArgument = None,
    status: StatusOption = None,
    type_: TypeOption = None,
    queue: QueueOption = None,
    tenant: TenantOption = None,
    tag: TagOption = None,
    parent: ParentOption = None,
    schedule: ScheduleOption = None,
    everything: AllOption = False,
    yes: YesOption = False,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Delete finished jobs: by id, or all that match."""
    filters = {"status": status, "type": type_, "queue": queue, "tenant": tenant, "tag": tag, "parent": parent}
    wanted = matching(ids, everything, FINISHED, FINISHED, **filters, schedule=schedule)
    home = reach(store, app)
    if wanted is not None:
        if _agreed(home, "delete", wanted, yes):
            typer.echo(f"{home.jobs.delete_all(**wanted):,} deleted")
        return
    for id_ in ids or ():
        found = home.jobs.find(id_)
        home.jobs.delete(found)
        typer.echo(f"{found} is deleted")


def _agreed(home: App, verb: str, wanted: dict[str, Any], yes: bool) -> bool:
    """Whether any job matches; then asks."""
    count = home.jobs.count(**wanted)
    statuses = wanted["status"]
    which = f"{', '.join(statuses[:-1])} or {statuses[-1]}" if len(statuses) > 1 else statuses[0]
    if not count:
        typer.echo(f"No {which} jobs match in {redact(home.store)}.")
        return False
    ask(f"{verb} {count:,} {which} job{'' if count == 1 else 's'} in {redact(home.store)}", yes)
    return True


def run_now(id_: IdArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Run a scheduled or failed job now instead of at its time."""
    home = reach(store, app)
    job = home.jobs.run_now(home.jobs.find(id_))
    typer.echo(f"{job.id} is {job.status}")


def change(
    id_: IdArgument,
    priority: Annotated[int | None, typer.Option(help="-32768 to 32767, higher first.")] = None,
    run_at: Annotated[
        str | None, typer.Option(help="When to run it, such as 2026-01-31T09:00 (UTC, unless it has an offset).")
    ] = None,
    delay: Annotated[str | None, typer.Option(help="Run it after this time, such as 60s or 5m.")] = None,
    payload: PayloadOption = None,
    queue: Annotated[str | None, typer.Option(help="Move it to this queue.")] = None,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a waiting job, or the payload of a dead one before it is retried; options that are not given stay."""
    home = reach(store, app)
    job = home.jobs.change(
        home.jobs.find(id_),
        priority=priority,
        run_at=None if run_at is None else moment(run_at, "--run-at"),
        delay=seconds(delay, "--delay"),
        payload=None if payload is None else parse_object(payload, "payload"),
        queue=queue,
    )
    if payload is not None:
        _note_unchecked(home, job)
    if as_json:
        print_json(job)
    else:
        typer.echo(_sentence(job))


def _note_unchecked(home: App, job: Job) -> None:
    if job.type not in home.registry and not is_server(home.store):
        typer.echo("note: the arguments were not checked; --app module:object does that", err=True)


def _sentence(job: Job) -> str:
    due = f", due {ago(job.run_at)}" if job.status in ("scheduled", "failed") else ""
    return f"{job.id} is {job.status} in queue {job.queue}, priority {job.priority}{due}"
