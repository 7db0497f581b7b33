"""links: new jobs that have parents. They wait; what has become of a parent already is theirs at once.

A parent that is not of the same hand-in is locked until that is committed, and marked: it cannot end unseen.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from windlass.core.chain import Source, check_links
from windlass.core.codec import encode
from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.core.queue import DEFAULT_RETENTION
from windlass.core.status import FINISHED, Status
from windlass.store.kinds import link_kind_of
from windlass.store.postgres import packing
from windlass.store.postgres.db import Db
from windlass.store.postgres.heirs import follow

LOOKS = 2
"""A parent may be revived between the look at the living and that at the finished: then another look finds it."""


def parents_of(jobs: Iterable[NewJob]) -> set[JobId]:
    """Everybody that one of these is to wait for."""
    return {parent for job in jobs for parent in job.parents}


async def hold_parents(db: Db, ids: Collection[JobId]) -> dict[JobId, Source]:
    """Those that are there: none of them ends, comes back or is dropped before this transaction is over."""
    held: dict[JobId, Source] = {}
    for _ in range(LOOKS):
        for name in ("lock_parents", "hold_finished"):
            wanted = sorted(set(ids) - set(held))
            rows = await db.rows(name, {"ids": wanted}) if wanted else []
            held |= {id_: Source(Status(status), queue) for id_, status, queue in rows}
    return held


class Family:
    """The parents that are known at a hand-in: they are held, or were stored by it."""

    def __init__(self, held: Mapping[JobId, Source]) -> None:
        self.sources = dict(held)
        self._marked: set[JobId] = set()

    def admit(self, stored: Iterable[NewJob], *, marked: bool) -> None:
        """These were stored by this hand-in; marked as such that somebody waits for, or not."""
        for job in stored:
            self.sources[job.id] = Source(Status.PENDING, job.queue)
            if marked:
                self._marked.add(job.id)

    async def complete(self, db: Db, links: Sequence[NewJob]) -> None:
        """Hold those too that turned out to be parents: somebody else had the key, or the id, of one that was new."""
        unknown = parents_of(links).difference(self.sources, (job.id for job in links))
        if unknown:
            self.sources |= await hold_parents(db, unknown)

    def ended(self) -> dict[JobId, Status]:
        """Those of them who have, and how."""
        return {id_: source.status for id_, source in self.sources.items() if source.status in FINISHED}

    def unmarked(self, links: Sequence[NewJob]) -> set[JobId]:
        """Those who do not know yet that somebody waits for them."""
        return parents_of(links).difference(self._marked, self.ended(), (job.id for job in links))


async def tie(db: Db, links: Sequence[NewJob], family: Family) -> int:
    """Links that were stored wait for their parents from now on: how many of them may run at once after all.

    Raises InvalidOption if a link could never run, or never get what it takes.
    """
    if not links:
        return 0
    await family.complete(db, links)
    await _check(db, links, family.sources)
    edges = [(parent, job.id) for job in links for parent in set(job.parents)]
    parents, children = zip(*edges, strict=True)
    await db.run("add_edges", {"parents": packing.ids(parents), "children": packing.ids(children)})
    if unmarked := family.unmarked(links):
        await db.run("mark_heirs", {"ids": sorted(unmarked)})
    ended = family.ended()
    return await follow(db, ended) if ended else 0


async def _check(db: Db, links: Sequence[NewJob], sources: Mapping[JobId, Source]) -> None:
    queues = {source.queue for source in sources.values()} | {job.queue for job in links}
    kept = dict(map(tuple, await db.rows("kept", {"queues": sorted(queues)})))
    unkept = [queue for queue in queues if kept.get(queue, DEFAULT_RETENTION[Status.COMPLETED]) == 0]
    check_links(links, sources, unkept)


def by_kind(links: Iterable[NewJob]) -> list[list[NewJob]]:
    """All that goes into one statement."""
    kinds: dict[Any, list[NewJob]] = defaultdict(list)
    for job in links:
        kinds[link_kind_of(job)].append(job)
    return list(kinds.values())


def linked(links: Sequence[NewJob], heirs: Collection[JobId]) -> dict[str, Any]:
    """What is a link's own, beside what is any job's, for the statement."""
    parents = [tuple(dict.fromkeys(job.parents)) for job in links]
    return {
        "own_parents": ",".join(job.parent or "" for job in links),
        "flows": packing.texts([job.flow for job in links]),
        "parents": [encode(each, "parents") for each in parents],
        "takes": packing.texts([encode(job.takes, "takes") if job.takes else None for job in links]),
        "waits": packing.numbers(map(len, parents)),
        "heirs": packing.numbers(int(job.id in heirs) for job in links),
    }
