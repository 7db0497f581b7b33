"""Dependencies: what happens to a dependent when its parents end, and how their results reach it. Pure.

A dependent lists its parents, not the other way round, so any job may get dependents, also a finished one. A link of
a chain has one parent; nothing here relies on that.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.job import Job, NewJob, ResultParam
from windlass.core.moments import Micros
from windlass.core.status import FINISHED, Status
from windlass.errors import InvalidOption

WAITING_FOR_PARENT = "waits for its parent"
"""The reason of a blocked job whose parents have not all completed."""

_ids = msgspec.json.Decoder(list[JobId])
_takes = msgspec.json.Decoder(list[ResultParam])
_inputs = msgspec.json.Decoder(list[tuple[JobId, str | None]])


class ParentEffect(Enum):
    """The effect of a parent's status on its dependent."""

    WAIT = "wait"
    RELEASE = "release"
    CANCEL = "cancel"


def effect_of(parent: Status, when_ended: bool = False) -> ParentEffect:
    """A completed parent releases its dependents. A dead or cancelled one cancels them, except those that wait for
    its end only (`when_ended`).
    """
    if parent is Status.COMPLETED:
        return ParentEffect.RELEASE
    if parent not in FINISHED:
        return ParentEffect.WAIT
    return ParentEffect.RELEASE if when_ended else ParentEffect.CANCEL


def parent_ended_reason(parent: JobId, status: Status) -> str:
    """The reason of a job that was cancelled because of its parent, by which a retry of the parent finds the job."""
    return f"its parent {parent} is {status}"


def parent_in_reason(reason: str | None) -> JobId | None:
    """The parent because of which a job was cancelled, from the reason; None if there is none."""
    words = (reason or "").split(" ")
    is_ours = len(words) == 5 and words[:2] == ["its", "parent"] and reason in _reasons(words[2])
    return words[2] if is_ours else None


def _reasons(parent: JobId) -> list[str]:
    return [parent_ended_reason(parent, status) for status in (Status.DEAD, Status.CANCELLED)]


def describe_cause(job: Job) -> str:
    """The job that caused a cancellation, in words."""
    why = f"{job.error.type}: {job.error.message}" if job.error is not None else job.reason
    return f"{job.type} {job.id}, which is {job.status}" + (f": {why}" if why else "")


def due_after(run_at: Micros, created_at: Micros, lag: Micros, now: Micros) -> Micros:
    """When a dependent is due after its last parent completed: its delay counts from now, a `run_at` stays.

    A `run_at` that is not after `created_at` means none was given; the clock may have been set back since.
    """
    return max(run_at if run_at > created_at else now, now + lag)


class ParentState(msgspec.Struct, frozen=True):
    """A parent at the enqueue of its dependent."""

    status: Status
    queue: str


def with_existing_parents(job: NewJob, existing: Mapping[JobId, JobId]) -> NewJob:
    """The job with parents replaced by the existing jobs that have their idempotency keys."""
    if not any(parent in existing for parent in job.parents):
        return job
    return msgspec.structs.replace(
        job,
        parent=existing.get(job.parent, job.parent) if job.parent else None,
        parents=tuple(existing.get(parent, parent) for parent in job.parents),
        result_params=tuple((name, existing.get(parent, parent)) for name, parent in job.result_params),
    )


def check_parents(jobs: Iterable[NewJob], sources: Mapping[JobId, ParentState], unkept: Iterable[str]) -> None:
    """Refuse a dependent that could never run, or never get a result that it needs.

    `sources` are the parents in the store; parents in the same batch precede their dependents. `unkept` are queues
    that keep no completed jobs: their results cannot be passed on.
    """
    known, dropping = dict(sources), frozenset(unkept)
    for job in jobs:
        for parent in job.parents:
            if parent not in known:
                raise InvalidOption("parents", f"there is no job {parent}: it is unknown, or not kept any more")
        if job.when_ended and job.result_params:
            name, parent = job.result_params[0]
            raise InvalidOption(
                f"result_params.{name}", f"{parent} may end without a result: {job.id} waits for its end"
            )
        for name, parent in job.result_params:
            if parent not in job.parents:
                raise InvalidOption(f"result_params.{name}", f"{parent} is not among the parents of {job.id}")
            if known[parent].queue in dropping:
                problem = f"job {parent} is in queue {known[parent].queue!r}, which keeps completed jobs for 0 s"
                raise InvalidOption(f"result_params.{name}", f"{problem}: its result cannot be passed on")
        known[job.id] = ParentState(Status.BLOCKED, job.queue)


def levels(jobs: Iterable[NewJob]) -> dict[JobId, int]:
    """How many jobs of a batch run one after the other before each of them; in a chain, the index of the link."""
    level: dict[JobId, int] = {}
    for job in jobs:
        level[job.id] = 1 + max((level.get(parent, 0) for parent in job.parents), default=0)
    return level


def pending_parents(parents: str, inputs: str | None) -> list[JobId]:
    """The parents, as JSON, that have not completed yet."""
    completed = {parent for parent, _ in _inputs.decode(inputs or "[]")}
    return [parent for parent in _ids.decode(parents) if parent not in completed]


def result_params_of(takes: str) -> list[ResultParam]:
    """Parameters with the parents whose results they get."""
    return _takes.decode(takes)


def parent_results(takes: str, inputs: str | None) -> dict[str, tuple[JobId, str]]:
    """By parameter: the parent, and its result as stored, JSON or a reference."""
    found = dict(_inputs.decode(inputs or "[]"))
    return {name: (parent, found.get(parent) or "null") for name, parent in _takes.decode(takes)}


def is_parent_result(field: str, takes: str) -> bool:
    """Whether a field such as `page.words[0]` is in a parameter that gets a parent's result."""
    return re.split(r"[.\[]", field)[0] in dict(_takes.decode(takes))


def with_results(payload: str, results: Sequence[tuple[str, str]]) -> str:
    """The payload with these parameters added, as JSON text without decoding it."""
    added = ",".join(f"{msgspec.json.encode(name).decode()}:{text}" for name, text in results)
    own = payload.strip()[1:-1].strip()
    return "{" + ",".join(part for part in (own, added) if part) + "}"
