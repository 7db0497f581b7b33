"""get, list, select, counts, failures: reading jobs wherever they are in their lives.

Live and finished jobs are always read by one statement: it has one snapshot, in which a job that is just moving from
the one table to the other is found exactly once.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from windlass.core.ids import JobId, check_id
from windlass.core.job import Job
from windlass.core.status import FINISHED, Status
from windlass.store.postgres.db import Db
from windlass.store.records import Counts, JobFilter, JobPage, Page
from windlass.store.rows import FINISHED_COLUMNS, LIVE_COLUMNS, to_job

MOST_WALKED = 10_000
"""So many rows a page may look at to find matches: then it ends, short, and the next one goes on."""

_UUIDS = ("id", "parent")
_TERMS = {
    "type": "type = :type",
    "queue": "queue = :queue",
    "tenant": "tenant = :tenant",
    "parent": "parent = :parent::uuid",
    # Looked for as it is written. The alphabet of names makes that exact, and no nonsense in the column can raise.
    "tag": "position('\"' || :tag::text || '\"' IN tags) > 0",
    "id_end": "right(id::text, length(:id_end::text)) = :id_end::text",
}


def _as_texts(columns: str) -> str:
    return ", ".join(f"{name}::text" if name in _UUIDS else name for name in columns.split(", "))


_LIVE = _as_texts(LIVE_COLUMNS)
_FINISHED = _as_texts(FINISHED_COLUMNS)

# LIMIT 1 keeps these look-ups from being turned into joins of whole tables.
_NOTES = "LEFT JOIN LATERAL (SELECT progress, logs FROM windlass.notes WHERE job = each.id LIMIT 1) AS said ON true"
_GET = f"""
SELECT {_LIVE}, progress, logs, lease_ends FROM windlass.jobs AS each {_NOTES}
LEFT JOIN LATERAL (
    SELECT expires_at AS lease_ends FROM windlass.leases
    WHERE each.status = 'running' AND runner = each.worker LIMIT 1
) AS lease ON true
WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT {_FINISHED}, progress, logs, NULL FROM windlass.history AS each {_NOTES}
WHERE id = ANY(:ids::uuid[])
"""


async def outcomes(db: Db, ids: Sequence[JobId]) -> list[str | None]:
    """What tombstones tell."""
    found: dict[JobId, str] = dict(await db.rows("outcomes", {"ids": list(ids)}))
    return [found.get(id_) for id_ in ids]


async def get(db: Db, ids: Sequence[JobId]) -> list[Job | None]:
    """Each job with what it said of itself and the end of its lease."""
    if not ids:
        return []
    found = {}
    for *job, progress, logs, lease_ends in await db.select(_GET, {"ids": list(dict.fromkeys(ids))}):
        found[job[0]] = to_job(tuple(job), (progress, logs), lease_ends)
    return [found.get(id_) for id_ in ids]


async def list_jobs(db: Db, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
    """Newest first; the cursor is the last id of the page before. Rare matches make short pages, not long walks."""
    before = check_id(cursor, "cursor") if cursor else None
    floor = max([await _floor(db, table, before) for table in _walked(wanted)], default="") or None
    bounds = _bound("id < :before::uuid", before) + _bound("id >= :floor::uuid", floor)
    parts = [
        f"(SELECT {columns} FROM {table} AS each WHERE {_where(terms + bounds)} ORDER BY each.id DESC LIMIT :limit)"
        for table, columns, terms in _parts(wanted)
    ]
    if not parts:
        return Page((), None)
    values = {**_values(wanted), "before": before, "floor": floor, "limit": limit}
    rows = await db.select(" UNION ALL ".join(parts), values)
    rows = sorted(rows, key=lambda row: str(row[0]), reverse=True)[:limit]
    end = rows[-1][0] if rows and len(rows) == limit else floor
    return Page(tuple(to_job(tuple(row)) for row in rows), end)


def _walked(wanted: JobFilter) -> list[str]:
    """The tables in which matches are looked for row by row, because no index leads to them."""
    if wanted.parent:
        return []
    rare = any((wanted.type, wanted.queue, wanted.tenant, wanted.tag, wanted.id_end))
    statuses = set(wanted.status) or set(Status)
    live = bool(statuses - FINISHED) and (rare or bool(wanted.status))
    return ["windlass.jobs"] * live + ["windlass.history"] * (rare and Status.COMPLETED in statuses)


async def _floor(db: Db, table: str, before: JobId | None) -> JobId:
    """The id at which a page ends at the latest; empty if the table ends before."""
    where = _where(_bound("id < :before::uuid", before))
    text = f"SELECT id::text FROM {table} AS each WHERE {where} ORDER BY each.id DESC LIMIT 1 OFFSET :walk"
    rows = await db.select(text, {"before": before, "walk": MOST_WALKED})
    return str(rows[0][0]) if rows else ""


async def select_ids(db: Db, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
    """Oldest first, after a given id."""
    bounds = _bound("id > :after::uuid", after)
    parts = [
        f"(SELECT id::text FROM {table} AS each WHERE {_where(terms + bounds)} ORDER BY each.id LIMIT :limit)"
        for table, _, terms in _parts(wanted)
    ]
    if not parts:
        return []
    rows = await db.select(" UNION ALL ".join(parts), {**_values(wanted), "after": after, "limit": limit})
    return sorted(str(row[0]) for row in rows)[:limit]


_FAILURES = f"""
(SELECT {_LIVE} FROM windlass.jobs WHERE status = 'failed' ORDER BY updated_at DESC LIMIT :limit)
UNION ALL
(SELECT {_FINISHED} FROM windlass.history_dead ORDER BY finished_at DESC LIMIT :limit)
"""


async def failures(db: Db, limit: int) -> list[Job]:
    """The newest of each kind by an index of its own, and the newest of both."""
    jobs = [to_job(tuple(row)) for row in await db.select(_FAILURES, {"limit": limit})]
    return sorted(jobs, key=lambda job: job.updated_at, reverse=True)[:limit]


async def counts(db: Db) -> Counts:
    """Live jobs are counted, finished ones have tallies."""
    queues: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(map(str, Status), 0))
    for queue, status, jobs in await db.rows("counts"):
        queues[queue][status] += jobs
    return Counts({name: queues[name] for name in sorted(queues)})


def _parts(wanted: JobFilter) -> list[tuple[str, str, list[str]]]:
    """Only the tables in which a match can be: name, columns, and the terms of a dynamic WHERE, all constants.

    What ended badly is asked for status by status, said outright: so the small index of just these is used, which has
    the jobs of each in the order of their ids.
    """
    fields = [term for name, term in _TERMS.items() if getattr(wanted, name)]
    statuses = set(wanted.status) or set(Status)
    parts = []
    if statuses - FINISHED:
        parts.append(("windlass.jobs", _LIVE, [*_any_status(wanted), *fields]))
    if Status.COMPLETED in statuses:
        parts.append(("windlass.history", _FINISHED, [*_any_status(wanted), *fields]))
    else:
        badly = sorted(statuses & FINISHED)
        parts += [("windlass.history", _FINISHED, [f"status = '{status}'", *fields]) for status in badly]
    return parts


def _any_status(wanted: JobFilter) -> list[str]:
    return ["status = ANY(:status::text[])"] if wanted.status else []


def _bound(term: str, value: JobId | None) -> list[str]:
    return [] if value is None else [term]


def _where(terms: Sequence[str]) -> str:
    return " AND ".join(terms) or "true"


def _values(wanted: JobFilter) -> dict[str, Any]:
    return {**{name: getattr(wanted, name) for name in _TERMS}, "status": [str(status) for status in wanted.status]}
