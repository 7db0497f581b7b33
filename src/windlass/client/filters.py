"""Which jobs: filters as people and programs give them, checked."""

from collections.abc import Sequence

from windlass.core.ids import check_id
from windlass.core.names import check_name
from windlass.core.status import Status
from windlass.errors import InvalidOption
from windlass.store.records import JobFilter


def job_filter(
    *,
    status: str | Sequence[str] = (),
    type: str | None = None,
    queue: str | None = None,
    tenant: str | None = None,
    tag: str | None = None,
    parent: str | None = None,
) -> JobFilter:
    """Which jobs, checked."""
    statuses = (status,) if isinstance(status, str) else tuple(status)
    for each in statuses:
        if each not in set(Status):
            raise InvalidOption("status", f"{each!r} is not one of {', '.join(Status)}")
    return JobFilter(
        status=tuple(Status(each) for each in statuses),
        type=None if type is None else check_name(type, "type"),
        queue=None if queue is None else check_name(queue, "queue"),
        tenant=None if tenant is None else check_name(tenant, "tenant"),
        tag=None if tag is None else check_name(tag, "tag"),
        parent=None if parent is None else check_id(parent, "parent"),
    )
