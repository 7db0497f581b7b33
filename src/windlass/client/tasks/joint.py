"""Finds the transaction in which jobs are enqueued: the caller's, if a connection was given."""

from collections.abc import Sequence

from windlass.core.jobs.job import NewJob
from windlass.errors import InvalidOption

ONE_CALL = "one call is part of one transaction: give the call its connection=, and not the jobs"


def joint_connection(jobs: Sequence[NewJob], given: object = None) -> object:
    """The given connection, or the one with which all jobs were made (`task.using(connection=...).job(...)`).

    Raises InvalidOption if they differ: no job may be stored outside the transaction that it was made for.
    """
    joint = own_connection(jobs[0]) if given is None and jobs else given
    for number, job in enumerate(jobs, 1):
        own = own_connection(job)
        if own is not joint and own != joint and not (own is None and given is not None):
            which = "has none, unlike the first" if own is None else "has another"
            raise InvalidOption("connection", f"job {number} of {len(jobs)} {which}; {ONE_CALL}")
    return joint


def own_connection(job: object) -> object:
    """The connection that a job was made with."""
    return getattr(job, "_connection", None)


def check_call_connection(job: object, field: str, given: object, call: str) -> None:
    """Refuse a job or task that was made with another connection than that of this call."""
    own = own_connection(job)
    if own is not None and own is not given and own != given:
        raise InvalidOption(f"{field}.connection", f"cannot be given to a single job here: {call}")


def refuse_connection(job: object) -> None:
    """Refuse a connection for a schedule: another process enqueues its jobs later."""
    if own_connection(job) is not None:
        raise InvalidOption("connection", "is of no use to a schedule: its jobs are enqueued at their ticks")
