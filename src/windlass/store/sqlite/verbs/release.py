"""Release of dependents: each parent that ended is one fewer to wait for; after the last one a dependent is due."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.limits.key_queue import assign_free_key_slots


class Dependent(NamedTuple):
    """A row of the statement `dependents`."""

    parent: JobId
    child: JobId
    when_ended: int
    """Whether the dependent waits for the parent's end, whatever the outcome."""
    queue: str | None
    """None: the dependent has finished meanwhile."""
    key: str | None
    result: str | None
    """JSON of [parent, result], if the dependent takes the result."""


def read_dependents(db: Db, parents: Collection[JobId]) -> list[Dependent]:
    """The dependents of these jobs."""
    return [Dependent(*row) for row in db.rows("dependents", {"parents": array(parents)})]


def release(db: Db, dependents: Sequence[Dependent], finished: Mapping[JobId, Status]) -> None:
    """Let each dependent wait for one parent fewer; `finished` has the statuses of the parents."""
    if not dependents:
        return
    results: dict[JobId, list[str | None]] = defaultdict(list)
    for each in dependents:
        results[each.child].append(each.result)
    releases = [(child, len(found), ",".join(filter(None, found)) or None) for child, found in results.items()]
    values = {"releases": array(releases), "now": db.now}
    db.run("release_dependents", values)
    if not all(each.queue for each in dependents):
        db.run("release_cancelled_dependents", values)
    parents = {each.parent for each in dependents}
    if completed := {id_ for id_ in parents if finished[id_] is Status.COMPLETED}:
        db.run("drop_dependencies", {"parents": array(completed)})
    if failed := parents - completed:
        db.run("drop_ended_dependencies", {"parents": array(failed)})
    assign_free_key_slots(db, {(each.queue, each.key) for each in dependents if each.queue and each.key})


def release_after_cancel(db: Db, parents: Collection[JobId]) -> None:
    """Release the dependents that wait only for the end of these jobs, which were cancelled."""
    dependents = [each for each in read_dependents(db, parents) if each.when_ended]
    release(db, dependents, dict.fromkeys(parents, Status.CANCELLED))
