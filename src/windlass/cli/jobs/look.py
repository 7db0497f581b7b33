"""windlass jobs list, windlass jobs show."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from windlass.cli.jobs.filters import (
    IdArgument,
    ParentOption,
    QueueOption,
    ScheduleOption,
    StatusOption,
    TagOption,
    TenantOption,
    TypeOption,
)
from windlass.cli.jobs.show import describe, row_of
from windlass.cli.jobs.why import print_first
from windlass.cli.output.advice import Advice
from windlass.cli.output.as_json import print_json, print_json_lines
from windlass.cli.output.tables import ago, print_table
from windlass.cli.reach import AppOption, JsonOption, StoreOption, look
from windlass.client.app import App
from windlass.client.verbs.links import Links
from windlass.client.verbs.payloads import EarlierPayload
from windlass.core.jobs.job import Job
from windlass.core.schedules.schedule import Schedule
from windlass.core.status import WAITING
from windlass.errors import InvalidOption, ScheduleNotFound, WindlassError
from windlass.store.open import redact
from windlass.store.records import Page

DEFAULT_LIMIT = 50
MAX_PAGE = 1000


def list_jobs(
    status: StatusOption = None,
    type_: TypeOption = None,
    queue: QueueOption = None,
    tenant: TenantOption = None,
    tag: TagOption = None,
    parent: ParentOption = None,
    schedule: ScheduleOption = None,
    chain: Annotated[
        str | None, typer.Option(metavar="ID", help="Only the links of this job's chain, in order.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, max=MAX_PAGE, help=f"At most this many; default {DEFAULT_LIMIT}."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them, however many.")] = False,
    cursor: Annotated[str | None, typer.Option(help="Go on after this id.")] = None,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
    as_lines: Annotated[bool, typer.Option("--json-lines", help="JSON for programs: a job per line.")] = False,
) -> None:
    """List jobs, newest first.

    To continue, give the id of the last one as --cursor.
    """
    if everything and limit is not None:
        raise InvalidOption("--limit", "cannot be given together with --all")
    if as_json and as_lines:
        raise InvalidOption("--json", "cannot be given together with --json-lines")
    home = look(store, app)
    wanted = {"status": status or (), "type": type_, "queue": queue, "tenant": tenant, "tag": tag}
    wanted |= {"parent": parent, "schedule": schedule}
    if chain is not None:
        _refuse_beside_chain(**wanted, cursor=cursor, all=everything, json_lines=as_lines)
        _list_chain(home, chain, limit or DEFAULT_LIMIT, as_json)
        return
    found: list[Job] = []
    for page in _pages(home, wanted, None if everything else limit or DEFAULT_LIMIT, cursor):
        cursor = page.next_cursor
        if as_lines:
            print_json_lines(page.items)
        else:
            found += page.items
    if as_json:
        print_json(found)
    elif not as_lines:
        _print_jobs(found, empty=f"No jobs match in {redact(home.store)}.")
    if cursor and not as_json:
        typer.echo(f"note: more: --cursor {cursor}" if as_lines else f"\nMore: --cursor {cursor}", err=as_lines)


def _pages(home: App, wanted: dict[str, Any], limit: int | None, cursor: str | None) -> Iterator[Page[Job]]:
    """Pages until the limit, or all; a page may be short, or empty, if matches are rare."""
    shown = 0
    while limit is None or shown < limit:
        page = home.jobs.list(**wanted, limit=MAX_PAGE if limit is None else limit - shown, cursor=cursor)
        yield page
        shown, cursor = shown + len(page.items), page.next_cursor
        if cursor is None:
            return


def _print_jobs(found: Sequence[Job], empty: str) -> None:
    columns = ["id", "status", "type", "queue", "attempt", "created", "what"]
    print_table(columns, [row_of(job) for job in found], empty=empty, spare=("queue", "attempt"))


def _refuse_beside_chain(**filters: object) -> None:
    for name, value in filters.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise InvalidOption(option, "cannot be given together with --chain, which lists all of its links")


def _list_chain(home: App, id_: str, limit: int, as_json: bool) -> None:
    """A whole chain, from any of its links."""
    links = home.jobs.links(home.jobs.find(id_), limit=limit)
    if as_json:
        print_json(links.jobs)
        return
    _print_jobs(links.jobs, empty="")
    if not (links.begins and links.ends):
        typer.echo(f"\n{id_} is {link_of(links)}; --limit goes further, older ones may not be kept any more")


def show(id_: IdArgument, store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """Show all details of a job. An offloaded payload or result is shown as its size and digest.

    For a waiting job it ends with the main reason why it waits.
    """
    home, advice = look(store, app), Advice(store, app)
    job = home.jobs.get(home.jobs.find(id_), fetch=False)
    if as_json:
        print_json(job)
        return
    describe(job, relations_of(home, job, advice), _earlier(home, job))
    if job.status in WAITING:
        print_first(home.jobs.why(job.id), advice)


def _earlier(home: App, job: Job) -> Sequence[EarlierPayload]:
    """The payloads that it had; none through a server whose token may not see them."""
    try:
        return home.jobs.earlier_payloads(job.id)
    except WindlassError as error:
        if error.code != "missing_scope":
            raise
        return ()


def relations_of(home: App, job: Job, advice: Advice) -> dict[str, str]:
    """The relations, by name."""
    return {**_of_chain(home, job, advice), **_of_schedule(home, job)}


def _of_chain(home: App, job: Job, advice: Advice) -> dict[str, str]:
    if job.flow is None and not job.parents:
        return {}
    links = home.jobs.links(job.id)
    said = {"chain": f"{link_of(links)} ({advice(f'windlass jobs list --chain {job.id}')})"}
    if links.before is not None:
        said["comes after"] = _described(links.before)
    elif job.parents:
        said["comes after"] = f"{job.parents[0]}, which is not kept any more"
    if links.after is not None:
        said["comes before"] = _described(links.after)
    return said


def link_of(links: Links) -> str:
    """`link 3 of 10`, as far as that is known."""
    count = f"{len(links.jobs):,}"
    if not links.begins:
        return f"link {links.number:,} of {count} that were found"
    return f"link {links.number:,} of {count}" + ("" if links.ends else " or more")


def _described(job: Job) -> str:
    return f"{job.type} {job.status} {job.id}"


def _of_schedule(home: App, job: Job) -> dict[str, str]:
    if job.schedule is None:
        return {}
    try:
        return {"next run": next_of(home.schedules.get(job.schedule))}
    except ScheduleNotFound:
        return {"next run": "none: the schedule was removed"}


def next_of(schedule: Schedule) -> str:
    """When a schedule's next tick is due, in short form."""
    if schedule.paused:
        return "none while it is paused"
    if schedule.next_at is None:
        return "never"
    return f"{schedule.next_at:%Y-%m-%d %H:%M:%S} UTC ({ago(schedule.next_at)})"
