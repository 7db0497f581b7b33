"""Release of dependents: each ended parent is one less to wait for; after the last one they are due."""

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
    """Whether the child waits for the parent's end, whatever its outcome."""
    queue: str | None
    """None: the child has finished meanwhile."""
    key: str | None
    result: str | None
    """JSON of [parent, result], if the child takes the result."""


def read_dependents(db: Db, parents: Collection[JobId]) -> list[Dependent]:
    """The children of these jobs."""
    return [Dependent(*row) for row in db.rows("dependents", {"parents": array(parents)})]


def release(db: Db, dependents: Sequence[Dependent], finished: Mapping[JobId, Status]) -> None:
    """These children have one parent less to wait for; `finished` are the parents."""
    if not dependents:
        return
    results: dict[JobId, list[str | None]] = defaultdict(list)
    for each in dependents:
        results[each.child].append(each.result)
    releases = [(child, len(found), ",".join(filter(None, found)) or None) for child, found in results.items()]
    values = {"releases": array(releases), "now": db.now}
    db.run("release_children", values)
    if not all(each.queue for each in dependents):
        db.run("release_cancelled_children", values)
    parents = {each.parent for each in dependents}
    if completed := {id_ for id_ in parents if finished[id_] is Status.COMPLETED}:
        db.run("drop_dependencies", {"parents": array(completed)})
    if failed := parents - completed:
        db.run("drop_ended_dependencies", {"parents": array(failed)})
    assign_free_key_slots(db, {(each.queue, each.key) for each in dependents if each.queue and each.key})


def release_after_cancel(db: Db, parents: Collection[JobId]) -> None:
    """These jobs were cancelled: release the children that wait for their end only."""
    dependents = [each for each in read_dependents(db, parents) if each.when_ended]
    release(db, dependents, dict.fromkeys(parents, Status.CANCELLED))
