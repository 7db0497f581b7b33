"""get, list, select, counts, failures: reading jobs wherever they are in their lives."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from windlass.core.ids import JobId, check_id
from windlass.core.job import Job
from windlass.core.status import FINISHED, Status
from windlass.store.records import Counts, JobFilter, JobPage, Page
from windlass.store.rows import FINISHED_COLUMNS, LIVE_COLUMNS, WORKER, to_job
from windlass.store.sqlite.db import Db, array

_LATEST = "g"
"""Sorts after every id: ids are hexadecimal."""

MOST_WALKED = 10_000
"""So many rows a page may look at to find matches: then it ends, short, and the next one goes on."""

_COLUMNS = ("type", "queue", "tenant", "parent")


_GET = f"""
SELECT {LIVE_COLUMNS} FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT {FINISHED_COLUMNS} FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))
"""


def get(db: Db, ids: Sequence[JobId]) -> list[Job | None]:
    """Live and finished jobs in one statement: one that is just moving is found exactly once."""
    found = {row[0]: _whole(db, row) for row in db.select(_GET, {"ids": array(ids)})}
    return [found.get(id_) for id_ in ids]


def outcomes(db: Db, ids: Sequence[JobId]) -> list[str | None]:
    """What tombstones tell."""
    found = dict(db.rows("outcomes", {"ids": array(ids), "now": db.now}))
    return [found.get(id_) for id_ in ids]


def _whole(db: Db, row: Any) -> Job:
    notes = db.rows("notes", {"job": row[0]})
    worker, ends = row[WORKER], None
    if row[4] == Status.RUNNING and (lease := db.rows("lease", {"runner": worker})):
        # Leases count from boot; people read wall time.
        ends = db.now + lease[0][3] - db.clock.since_boot()
    return to_job(row, notes[0] if notes else None, ends)


def list_jobs(db: Db, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
    """Newest first; the cursor is the last id of the page before. Rare matches make short pages, not long walks."""
    before = check_id(cursor, "cursor") if cursor else _LATEST
    floor = max((_floor(db, table, before) for table in _walked(wanted)), default="")
    values = {**_values(wanted), "before": before, "floor": floor, "limit": limit}
    parts = [
        f"SELECT {columns} FROM {table} WHERE id < :before AND id >= :floor{_where(wanted, finished)}"
        for table, columns, finished in _tables(wanted)
    ]
    if not parts:
        return Page((), None)
    rows = db.select(" UNION ALL ".join(parts) + " ORDER BY id DESC LIMIT :limit", values)
    end = rows[-1][0] if rows and len(rows) == limit else floor or None
    return Page(tuple(to_job(row) for row in rows), end)


def _walked(wanted: JobFilter) -> list[str]:
    """The tables in which matches are looked for row by row, because no index leads to them."""
    if wanted.parent:
        return []
    rare = any((wanted.type, wanted.queue, wanted.tenant, wanted.tag, wanted.id_end))
    return [
        table
        for table, _, finished in _tables(wanted)
        if (rare and (not wanted.status or Status.COMPLETED in wanted.status) if finished else rare or wanted.status)
    ]


def _floor(db: Db, table: str, before: str) -> str:
    """The id at which a page ends at the latest."""
    text = f"SELECT id FROM {table} WHERE id < :before ORDER BY id DESC LIMIT 1 OFFSET :walk"
    rows = db.select(text, {"before": before, "walk": MOST_WALKED})
    return rows[0][0] if rows else ""


_FAILURES = f"""
SELECT * FROM (
    SELECT {LIVE_COLUMNS} FROM windlass_jobs INDEXED BY windlass_jobs_failed
    WHERE status = 'failed' ORDER BY updated_at DESC LIMIT :limit
)
UNION ALL
SELECT * FROM (
    SELECT {FINISHED_COLUMNS} FROM windlass_history INDEXED BY windlass_history_dead
    WHERE status = 'dead' ORDER BY finished_at DESC LIMIT :limit
)
"""


def failures(db: Db, limit: int) -> list[Job]:
    """The newest of each kind by an index of its own, and the newest of both."""
    jobs = [to_job(row) for row in db.select(_FAILURES, {"limit": limit})]
    return sorted(jobs, key=lambda job: job.updated_at, reverse=True)[:limit]


def select_ids(db: Db, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
    """Oldest first, after a given id."""
    values = {**_values(wanted), "after": after or "", "limit": limit}
    parts = [
        f"SELECT id FROM {table} WHERE id > :after{_where(wanted, finished)}"
        for table, _, finished in _tables(wanted)
    ]
    if not parts:
        return []
    return [row[0] for row in db.select(" UNION ALL ".join(parts) + " ORDER BY id LIMIT :limit", values)]


def counts(db: Db) -> Counts:
    """Live jobs are counted, finished ones have a tally."""
    queues: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(map(str, Status), 0))
    for queue, status, jobs in db.rows("counts"):
        queues[queue][status] += jobs
    return Counts({name: queues[name] for name in sorted(queues)})


def _tables(wanted: JobFilter) -> list[tuple[str, str, bool]]:
    """Only the tables in which a match can be."""
    statuses = set(wanted.status) or set(Status)
    tables = []
    if statuses - FINISHED:
        tables.append(("windlass_jobs", LIVE_COLUMNS, False))
    if statuses & FINISHED:
        tables.append(("windlass_history", FINISHED_COLUMNS, True))
    return tables


def _where(wanted: JobFilter, finished: bool) -> str:
    """The one dynamic WHERE, put together from constants; every value is bound."""
    terms = [f" AND {column} = :{column}" for column in _COLUMNS if getattr(wanted, column)]
    if wanted.status:
        terms.append(" AND status IN (SELECT value FROM json_each(:status))")
        if finished and Status.COMPLETED not in wanted.status:
            # Said outright, so that the small index of what ended badly is used.
            terms.append(" AND status <> 'completed'")
    if wanted.tag:
        terms.append(" AND EXISTS (SELECT 1 FROM json_each(iif(json_valid(tags), tags, NULL)) WHERE value = :tag)")
    if wanted.id_end:
        terms.append(" AND substr(id, -length(:id_end)) = :id_end")
    return "".join(terms)


def _values(wanted: JobFilter) -> dict[str, Any]:
    return {
        "status": array(wanted.status),
        "type": wanted.type,
        "queue": wanted.queue,
        "tenant": wanted.tenant,
        "tag": wanted.tag,
        "parent": wanted.parent,
        "id_end": wanted.id_end,
    }
