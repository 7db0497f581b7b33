"""Jobs that wait for others: what becomes of a child when its parents end, and how their results reach it. Pure.

A child knows its parents, a parent knows nobody: so any job may get children, be it over already. A link of a chain
has one parent; nothing here counts on that.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import Job, NewJob, Take
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, Status
from windlass.errors import InvalidOption

AWAITING = "waits for its parent"
"""The reason of a blocked job whose parents have not all completed."""

_ids = msgspec.json.Decoder(list[JobId])
_takes = msgspec.json.Decoder(list[Take])
_inputs = msgspec.json.Decoder(list[tuple[JobId, str | None]])


class Turn(Enum):
    """What a parent's status means for a child that waits for it."""

    WAIT = "wait"
    GO_ON = "go on"
    CALL_OFF = "call off"


def turn_of(parent: Status) -> Turn:
    """Only a completed parent lets its children go on. One that is dead or cancelled takes them with it."""
    if parent is Status.COMPLETED:
        return Turn.GO_ON
    return Turn.CALL_OFF if parent in FINISHED else Turn.WAIT


def called_off_by(parent: JobId, status: Status) -> str:
    """The reason of a child that is cancelled because its parent ended so. A retry of the parent knows it by that."""
    return f"its parent {parent} is {status}"


def parent_in(reason: str | None) -> JobId | None:
    """The parent because of which a job was cancelled, if that is why."""
    words = (reason or "").split(" ")
    is_ours = len(words) == 5 and words[:2] == ["its", "parent"] and reason in _reasons(words[2])
    return words[2] if is_ours else None


def _reasons(parent: JobId) -> list[str]:
    return [called_off_by(parent, status) for status in (Status.DEAD, Status.CANCELLED)]


def told_of(job: Job) -> str:
    """The job because of which others were called off, in words."""
    why = f"{job.error.type}: {job.error.message}" if job.error is not None else job.reason
    return f"{job.type} {job.id}, which is {job.status}" + (f": {why}" if why else "")


def due_after(run_at: Micros, created_at: Micros, lag: Micros, now: Micros) -> Micros:
    """When a child is due whose last parent completes now: its delay counts from here, a moment stays what it is.

    One that is not after the hand-in says nothing: there it stands for none, and the clock may have been set back.
    """
    return max(run_at if run_at > created_at else now, now + lag)


class Source(msgspec.Struct, frozen=True):
    """A parent as a hand-in finds it."""

    status: Status
    queue: str


def rebased(job: NewJob, stands: Mapping[JobId, JobId]) -> NewJob:
    """The job as a child of those that stand: another one may have had the key of a parent that came with it."""
    if not any(parent in stands for parent in job.parents):
        return job
    return msgspec.structs.replace(
        job,
        parent=stands.get(job.parent, job.parent) if job.parent else None,
        parents=tuple(stands.get(parent, parent) for parent in job.parents),
        takes=tuple((name, stands.get(parent, parent)) for name, parent in job.takes),
    )


def check_links(jobs: Iterable[NewJob], sources: Mapping[JobId, Source], unkept: Iterable[str]) -> None:
    """Refuse a child that could never run, or never get what it takes.

    `sources` are the parents that the store knows; those of the same hand-in come before their children. Queues that
    keep no completed jobs are `unkept`: a result that is gone at once cannot be counted on.
    """
    known, dropping = dict(sources), frozenset(unkept)
    for job in jobs:
        for parent in job.parents:
            if parent not in known:
                raise InvalidOption("parents", f"there is no job {parent}: it is unknown, or not kept any more")
        for name, parent in job.takes:
            if parent not in job.parents:
                raise InvalidOption(f"takes.{name}", f"{parent} is not among the parents of {job.id}")
            if known[parent].queue in dropping:
                problem = f"job {parent} is in queue {known[parent].queue!r}, which keeps completed jobs for 0 s"
                raise InvalidOption(f"takes.{name}", f"{problem}: its result cannot be passed on")
        known[job.id] = Source(Status.BLOCKED, job.queue)


def parents_left(parents: str, inputs: str | None) -> list[JobId]:
    """Those of its parents, as JSON, from which a child has nothing yet: not even that they completed."""
    come = {parent for parent, _ in _inputs.decode(inputs or "[]")}
    return [parent for parent in _ids.decode(parents) if parent not in come]


def result_texts(takes: str, inputs: str | None) -> dict[str, tuple[JobId, str]]:
    """By parameter: whose result it gets, and that as it is stored, JSON or a reference."""
    found = dict(_inputs.decode(inputs or "[]"))
    return {name: (parent, found.get(parent) or "null") for name, parent in _takes.decode(takes)}


def is_taken(field: str, takes: str) -> bool:
    """Whether `page.words[0]` is in a parameter that gets the result of a parent."""
    return re.split(r"[.\[]", field)[0] in dict(_takes.decode(takes))


def with_results(payload: str, results: Sequence[tuple[str, str]]) -> str:
    """The payload with these parameters put in, as JSON text: nothing is read and written anew on the way."""
    added = ",".join(f"{msgspec.json.encode(name).decode()}:{text}" for name, text in results)
    own = payload.strip()[1:-1].strip()
    return "{" + ",".join(part for part in (own, added) if part) + "}"
