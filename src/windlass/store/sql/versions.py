"""Versions of jobs, checked in the transaction that changes them."""

from collections.abc import Mapping, Sequence

from windlass.core.ids import JobId
from windlass.core.jobs.version import Versions, version_of
from windlass.core.status import Status
from windlass.store.records import Transition
from windlass.store.sql.session import Session


async def stale_jobs(db: Session, versions: Versions) -> dict[JobId, Transition]:
    """Jobs that have another version. The caller has locked them."""
    rows = await db.rows("job_versions", {"ids": list(versions)})
    return {
        id_: Transition(id_, Status(status), done=False, stale=True)
        for id_, status, attempt, updated_at, payload in rows
        if version_of(attempt, updated_at, payload) != versions[id_]
    }


def with_stale(
    ids: Sequence[JobId], stale: Mapping[JobId, Transition], moved: Sequence[Transition | None]
) -> list[Transition | None]:
    """The answers in the order of the ids; `moved` are the answers for the jobs that are not stale."""
    rest = iter(moved)
    return [stale[id_] if id_ in stale else next(rest) for id_ in ids]
