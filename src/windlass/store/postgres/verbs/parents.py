"""Parents of new jobs: a dependent waits for its parents, or is released or cancelled at once if they have ended.

A parent from an earlier enqueue is locked until the commit and gets `has_dependents`, so that its end concerns the
dependents.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from windlass.core.codec import encode
from windlass.core.flow.queue import DEFAULT_RETENTION
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import ParentState, check_parents
from windlass.core.jobs.job import NewJob
from windlass.core.status import FINISHED, Status
from windlass.store.postgres.connection.db import Db, pack_ids, pack_numbers, pack_texts
from windlass.store.postgres.verbs.dependents import after_parents_ended
from windlass.store.rows import shared_child_values

MAX_READS = 2
"""A parent may be revived between the reads of live and of finished jobs: then the next round finds it."""


def parents_of(jobs: Iterable[NewJob]) -> set[JobId]:
    """All parents of these jobs."""
    return {parent for job in jobs for parent in job.parents}


async def lock_parents(db: Db, ids: Collection[JobId]) -> dict[JobId, ParentState]:
    """Lock the parents that exist, and return their states: none ends, is revived or dropped before the commit."""
    held: dict[JobId, ParentState] = {}
    for _ in range(MAX_READS):
        for name in ("lock_parents", "share_lock_finished"):
            wanted = sorted(set(ids) - set(held))
            rows = await db.rows(name, {"ids": wanted}) if wanted else []
            held |= {id_: ParentState(Status(status), queue) for id_, status, queue in rows}
    return held


class KnownParents:
    """The parents whose state an enqueue knows, because it has locked or stored them."""

    def __init__(self, held: Mapping[JobId, ParentState]) -> None:
        self.sources = dict(held)
        self._marked: set[JobId] = set()

    def admit(self, stored: Iterable[NewJob], marked: Collection[JobId]) -> None:
        """Add jobs that this enqueue has stored, the `marked` ones with has_dependents."""
        for job in stored:
            self.sources[job.id] = ParentState(Status.PENDING, job.queue)
            if job.id in marked:
                self._marked.add(job.id)

    async def complete(self, db: Db, links: Sequence[NewJob]) -> None:
        """Also lock existing jobs that replace a new parent, because of its id or key."""
        unknown = parents_of(links).difference(self.sources, (job.id for job in links))
        if unknown:
            self.sources |= await lock_parents(db, unknown)

    def ended(self) -> dict[JobId, Status]:
        """The parents that have ended, and how."""
        return {id_: source.status for id_, source in self.sources.items() if source.status in FINISHED}

    def unmarked(self, links: Sequence[NewJob]) -> set[JobId]:
        """The parents that do not have has_dependents yet."""
        return parents_of(links).difference(self._marked, self.ended(), (job.id for job in links))


async def add_dependencies(db: Db, links: Sequence[NewJob], known_parents: KnownParents) -> int:
    """Make stored dependents wait for their parents; returns how many may run at once.

    Raises InvalidOption if a dependent could never run, or never get the results it takes.
    """
    if not links:
        return 0
    await known_parents.complete(db, links)
    await _check(db, links, known_parents.sources)
    edges = [(parent, job.id, int(job.when_ended)) for job in links for parent in set(job.parents)]
    parents, children, when_ended = zip(*edges, strict=True)
    values = {"parents": pack_ids(parents), "children": pack_ids(children), "when_ended": pack_numbers(when_ended)}
    await db.run("add_dependencies", values)
    if unmarked := known_parents.unmarked(links):
        await db.run("set_has_dependents", {"ids": sorted(unmarked)})
    ended = known_parents.ended()
    return await after_parents_ended(db, ended) if ended else 0


async def _check(db: Db, links: Sequence[NewJob], sources: Mapping[JobId, ParentState]) -> None:
    queues = {source.queue for source in sources.values()} | {job.queue for job in links}
    kept = dict(map(tuple, await db.rows("completed_retention", {"queues": sorted(queues)})))
    unkept = [queue for queue in queues if kept.get(queue, DEFAULT_RETENTION[Status.COMPLETED]) == 0]
    check_parents(links, sources, unkept)


def by_kind(links: Iterable[NewJob]) -> list[list[NewJob]]:
    """Dependents, grouped by what one statement can store."""
    kinds: dict[Any, list[NewJob]] = defaultdict(list)
    for job in links:
        kinds[shared_child_values(job)].append(job)
    return list(kinds.values())


def parent_columns(job: NewJob) -> dict[str, Any]:
    """The columns of a job that concern its parents."""
    parents = tuple(dict.fromkeys(job.parents))
    return {
        "parents": encode(parents, "parents") if parents else None,
        "result_params": encode(job.result_params, "result_params") if job.result_params else None,
        "pending_parents": len(parents),
    }


def dependent_columns(links: Sequence[NewJob], with_dependents: Collection[JobId]) -> dict[str, Any]:
    """The columns of dependents that other jobs do not have."""
    own = [parent_columns(job) for job in links]
    return {
        "own_parents": ",".join(job.parent or "" for job in links),
        "flows": pack_texts([job.flow for job in links]),
        "parents": [each["parents"] for each in own],
        "result_params": pack_texts([each["result_params"] for each in own]),
        "pending_parents": pack_numbers(each["pending_parents"] for each in own),
        "metas": pack_texts([job.meta for job in links]),
        "has_dependents": pack_numbers(int(job.id in with_dependents) for job in links),
    }
