"""Jobs that wait for parents: a parent that finishes releases or cancels its dependents in its own transaction."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from windlass.core.codec import encode
from windlass.core.flow.queue import DEFAULT_RETENTION
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import (
    ParentEffect,
    ParentState,
    check_parents,
    effect_of,
    levels,
    parent_ended_reason,
)
from windlass.core.jobs.job import NewJob
from windlass.core.status import FINISHED, Status
from windlass.store.rows import per_job_values, shared_child_values
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.limits.idempotency_keys import take
from windlass.store.sqlite.verbs.cancel import cancel_waiting
from windlass.store.sqlite.verbs.release import read_dependents, release


def parent_states(db: Db, dependents: Sequence[NewJob]) -> dict[JobId, ParentState]:
    """The existing parents; raises InvalidOption if a dependent could never run, or never get a result it takes."""
    wanted = {parent for job in dependents for parent in job.parents}
    rows = db.rows("parent_states", {"ids": array(wanted)})
    found = {id_: ParentState(Status(status), queue) for id_, status, queue in rows}
    queues = {parent.queue for parent in found.values()} | {job.queue for job in dependents}
    kept = dict(db.rows("keep_completed", {"queues": array(queues)}))
    unkept = [queue for queue in queues if kept.get(queue, DEFAULT_RETENTION[Status.COMPLETED]) == 0]
    check_parents(dependents, found, unkept)
    return found


def insert_dependents(
    db: Db, dependents: Sequence[tuple[NewJob, dict[str, Any]]], parents: Mapping[JobId, ParentState]
) -> None:
    """Insert jobs with parents, given with their shared columns: parents before dependents, alike jobs together."""
    level = levels(job for job, _ in dependents)
    alike: dict[Any, list[NewJob]] = defaultdict(list)
    shared: dict[Any, dict[str, Any]] = {}
    for job, columns in sorted(dependents, key=lambda each: level[each[0].id]):
        kind = shared_child_values(job)
        alike[kind].append(job)
        shared[kind] = columns
    for kind, jobs in alike.items():
        delay = jobs[0].delay if jobs[0].run_at is None else 0
        values = {**shared[kind], "delay_after_parents": delay, "batch": array(map(_row, jobs))}
        db.run("enqueue_dependents", values)
    edges = ((parent, job.id, int(job.when_ended)) for job, _ in dependents for parent in set(job.parents))
    db.run("add_dependencies", {"dependencies": array(edges)})
    after_parents_ended(db, {id_: parent.status for id_, parent in parents.items() if parent.status in FINISHED})


def _row(job: NewJob) -> tuple[Any, ...]:
    result_params = encode(job.result_params, "result_params") if job.result_params else None
    parents = tuple(dict.fromkeys(job.parents))
    return (
        *per_job_values(job),
        job.parent,
        job.flow,
        encode(parents, "parents"),
        result_params,
        len(parents),
        job.meta,
    )


def after_parents_ended(db: Db, finished: Mapping[JobId, Status]) -> None:
    """Release or cancel the dependents of jobs that are in history now; most jobs have none."""
    dependents = read_dependents(db, finished)
    if not dependents:
        return
    effects = [(each, effect_of(finished[each.parent], bool(each.when_ended))) for each in dependents]
    release(db, [each for each, effect in effects if effect is ParentEffect.RELEASE], finished)
    lost = [each for each, effect in effects if each.queue and effect is ParentEffect.CANCEL]
    cancel_waiting(db, {each.child: parent_ended_reason(each.parent, finished[each.parent]) for each in lost})


class CancelledDependent(NamedTuple):
    """A row of the statement `cancelled_because_of`."""

    id: JobId
    queue: str
    key: str | None
    lost_parents: str
    """JSON of {parent: status}: the parents that ended without completing."""


def revive_dependents(db: Db, parent: JobId) -> None:
    """The parent runs again: jobs that were cancelled because of it wait for it again, and so do their dependents.

    A job stays cancelled, with its dependents, if its idempotency key has another holder, or if another parent is
    lost: from now on that is the reason.
    """
    cancelled = [CancelledDependent(*row) for row in db.rows("cancelled_because_of", {"id": parent})]
    revived: dict[JobId, str] = {}
    before = -1
    # Repeated for jobs whose parents come after them in the list.
    while cancelled and len(revived) > before:
        before = len(revived)
        for each in cancelled:
            can_wait = _lost_parents(each).keys() <= revived.keys()
            if can_wait and (each.key is None or take(db, each.queue, each.key, each.id) is None):
                revived[each.id] = each.queue
        cancelled = [each for each in cancelled if each.id not in revived]
    revive_waiting(db, revived)
    still_lost = {
        each.id: {id_: status for id_, status in _lost_parents(each).items() if id_ not in revived}
        for each in cancelled
    }
    reasons = [(child, parent_ended_reason(*sorted(lost.items())[0])) for child, lost in still_lost.items() if lost]
    if reasons:
        db.run("set_cancel_reasons", {"reasons": array(reasons)})


def _lost_parents(job: CancelledDependent) -> dict[JobId, Status]:
    return {parent: Status(status) for parent, status in json.loads(job.lost_parents).items()}


def revive_waiting(db: Db, queues: Mapping[JobId, str]) -> None:
    """Make cancelled jobs, given with their queues, wait for their parents again."""
    if not queues:
        return
    values = {"ids": array(queues), "now": db.now}
    db.run("revive_waiting", values)
    db.run("drop_history", values)
    for queue in queues.values():
        db.add_history_count(queue, Status.CANCELLED, -1)
