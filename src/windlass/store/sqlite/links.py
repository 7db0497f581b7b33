"""links: new jobs that have parents. They wait; what has become of a parent already is theirs at once."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from windlass.core.chain import Source, check_links
from windlass.core.codec import encode
from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.core.queue import DEFAULT_RETENTION
from windlass.core.status import FINISHED, Status
from windlass.store.kinds import link_kind_of, own_of
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.heirs import follow


def sources_of(db: Db, links: Sequence[NewJob]) -> dict[JobId, Source]:
    """The parents that are there; raises InvalidOption if a link could never run, or never get what it takes."""
    wanted = {parent for job in links for parent in job.parents}
    found = {id_: Source(Status(status), queue) for id_, status, queue in db.rows("sources", {"ids": array(wanted)})}
    queues = {source.queue for source in found.values()} | {job.queue for job in links}
    kept = dict(db.rows("kept", {"queues": array(queues)}))
    unkept = [queue for queue in queues if kept.get(queue, DEFAULT_RETENTION[Status.COMPLETED]) == 0]
    check_links(links, found, unkept)
    return found


def insert_links(db: Db, links: Sequence[tuple[NewJob, dict[str, Any]]], sources: Mapping[JobId, Source]) -> None:
    """Store links, each with what it has in common with those like it; all that is alike by one statement."""
    kinds: dict[Any, list[NewJob]] = defaultdict(list)
    common: dict[Any, dict[str, Any]] = {}
    for job, values in links:
        kind = link_kind_of(job)
        kinds[kind].append(job)
        common[kind] = values
    for kind, alike in kinds.items():
        lag = alike[0].delay if alike[0].run_at is None else 0
        db.run("enqueue_links", {**common[kind], "lag": lag, "batch": array(map(_row, alike))})
    db.run("add_edges", {"edges": array((parent, job.id) for job, _ in links for parent in set(job.parents))})
    follow(db, {id_: source.status for id_, source in sources.items() if source.status in FINISHED})


def _row(job: NewJob) -> tuple[Any, ...]:
    takes = encode(job.takes, "takes") if job.takes else None
    parents = tuple(dict.fromkeys(job.parents))
    return (*own_of(job), job.parent, job.flow, encode(parents, "parents"), takes, len(parents))
