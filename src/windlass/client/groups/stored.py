"""Reads the jobs that are stored already under the ids of a group."""

from windlass.client.tasks.task import Enqueuer
from windlass.core.groups.ids import GROUP_TYPE, MEMBER_TYPE
from windlass.core.jobs.job import Job, NewJob
from windlass.errors import InvalidOption


def check_group(found: Job, name: str) -> None:
    """The job with the id of this name must be a group: graphs have the same ids."""
    if found.type != GROUP_TYPE:
        raise InvalidOption("id", f"there is a flow {name!r}, which is no group")


def is_open(group: Job) -> bool:
    """Whether members are, or were, added to this group one by one."""
    return isinstance(group.payload, dict) and bool(group.payload.get("open"))


async def without_stored(enqueuer: Enqueuer, jobs: list[NewJob], connection: object = None) -> list[NewJob]:
    """Drop the members that represent other jobs and are stored already, together with those jobs.

    The key of such a job may be free again, so it would run a second time.
    """
    members = {job.id: job for job in jobs if job.type == MEMBER_TYPE}
    if not members:
        return jobs
    found = await enqueuer._stored(list(members), connection)
    behind = {job.id: job for job in jobs}
    gone = {job.id for job in found if job is not None}
    waiting = [members[id_] for id_ in gone]
    while waiting:
        parents = [behind[id_] for job in waiting for id_ in job.parents if id_ in behind]
        gone |= {job.id for job in parents}
        waiting = parents
    return [job for job in jobs if job.id not in gone]
