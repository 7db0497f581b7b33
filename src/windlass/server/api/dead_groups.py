"""Dead jobs by type and error."""

from datetime import datetime

import msgspec

from windlass.core.moments import SECOND, to_datetime
from windlass.server.operation import Answer, Call, reads
from windlass.store.clock import since_boot
from windlass.store.records import NEWEST, JobEnd

MAX_DEAD = 20_000
"""Dead jobs that are grouped, the newest."""
GROUPING_SECONDS = 0.7
DEAD_PAGE = 500


class DeadGroup(msgspec.Struct, kw_only=True):
    """Dead jobs of one type with one kind of error."""

    type: str
    error: str | None
    count: int
    first_at: datetime
    last_at: datetime
    message: str | None
    """Of the newest."""
    newest: str
    """The id of the newest."""


class DeadGroups(msgspec.Struct):
    """Groups of dead jobs, the largest first. `complete` is false if there are more dead jobs than were read."""

    groups: list[DeadGroup]
    read: int
    complete: bool


async def group_dead(call: Call) -> Answer:
    """The newest dead jobs by type and error."""
    groups: dict[tuple[str, str | None], DeadGroup] = {}
    operator = (await call.app._ready()).operator
    read, before, complete, ends = 0, NEWEST, False, since_boot() + GROUPING_SECONDS * SECOND
    while read < MAX_DEAD and since_boot() < ends and not complete:
        page = await operator.dead_ends(DEAD_PAGE, before)
        for end in page:
            if call.caller.rights.covers(end.queue, end.type):
                read += 1
                _add_to_group(groups, end)
        complete = len(page) < DEAD_PAGE
        before = (page[-1].at, page[-1].id) if page else before
    ordered = sorted(groups.values(), key=lambda group: (-group.count, group.type))
    return Answer(DeadGroups(ordered, read, complete))


def _add_to_group(groups: dict[tuple[str, str | None], DeadGroup], end: JobEnd) -> None:
    """Ends come latest first."""
    kind, at = end.error.type if end.error else None, to_datetime(end.at)
    group = groups.get((end.type, kind))
    if group is not None:
        group.count, group.first_at = group.count + 1, at
        return
    message = end.error.message if end.error else end.reason
    groups[end.type, kind] = DeadGroup(
        type=end.type, error=kind, count=1, first_at=at, last_at=at, message=message, newest=end.id
    )


OPERATIONS = (reads("/dead/groups", group_dead, "Dead jobs by type and error", DeadGroups),)
