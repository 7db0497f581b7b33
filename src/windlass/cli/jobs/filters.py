"""Options that choose jobs: an id, or filters."""

from collections.abc import Collection
from typing import Annotated, Any

import typer

from windlass.cli.complete import queue_names, statuses
from windlass.core.status import Status
from windlass.errors import InvalidOption

_ID = "The job's id, or its beginning or end: 4 characters or more."
IdArgument = Annotated[str, typer.Argument(metavar="ID", help=_ID)]
IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help=_ID)]
StatusOption = Annotated[
    list[str] | None,
    typer.Option("--status", help="Only jobs in this status; may be repeated.", autocompletion=statuses),
]
TypeOption = Annotated[str | None, typer.Option("--type", help="Only this type.")]
QueueOption = Annotated[str | None, typer.Option("--queue", help="Only this queue.", autocompletion=queue_names)]
TenantOption = Annotated[str | None, typer.Option("--tenant", help="Only this tenant.")]
TagOption = Annotated[str | None, typer.Option("--tag", help="Only jobs with this tag.")]
ParentOption = Annotated[str | None, typer.Option("--parent", help="Only the children of this job.")]
ScheduleOption = Annotated[str | None, typer.Option("--schedule", help="Only jobs of this schedule.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every job that matches, also without a filter.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most this many.")]


def matching(
    ids: list[str] | None, everything: bool, allowed: Collection[Status], default: Collection[Status], **filters: Any
) -> dict[str, Any] | None:
    """The filter of a command by id or filter; None: by id. Only jobs in an `allowed` status can match."""
    given = {name: value for name, value in filters.items() if value}
    if bool(ids) == bool(given or everything):
        raise typer.BadParameter("name ids, or filters such as --type or --status; --all is for every job")
    for status in given.get("status", ()):
        if status not in allowed:
            raise InvalidOption("--status", f"{status!r:.100} is not one of {', '.join(sorted(allowed))}")
    return None if ids else {"status": sorted(default), **given}
