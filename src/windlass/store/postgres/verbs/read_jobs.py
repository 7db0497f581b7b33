"""get, list, select, counts, failures: read jobs, live or finished.

Live and finished jobs are read by one statement: in its snapshot a job that moves between the tables is found exactly
once.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from windlass.core.ids import JobId, check_id
from windlass.core.jobs.job import Job
from windlass.core.status import FINISHED, Status
from windlass.store.postgres.connection.db import Db
from windlass.store.records import Counts, Held, JobFilter, JobPage, Page
from windlass.store.rows import FINISHED_COLUMNS, LIVE_COLUMNS, to_job

MAX_WALKED = 10_000
"""Rows that a page scans for matches; then it ends, short, and the next one goes on."""

_UUIDS = ("id", "parent")
_TERMS = {
    "type": "type = :type",
    "queue": "queue = :queue",
    "tenant": "tenant = :tenant",
    "schedule": "schedule = :schedule",
    "parent": "parent = :parent::uuid",
    # A text search. The alphabet of tags makes it exact, and invalid content cannot raise.
    "tag": "position('\"' || :tag::text || '\"' IN tags) > 0",
    "id_end": "right(id::text, length(:id_end::text)) = :id_end::text",
}


def _as_texts(columns: str) -> str:
    return ", ".join(f"{name}::text" if name in _UUIDS else name for name in columns.split(", "))


_LIVE = _as_texts(LIVE_COLUMNS)
_FINISHED = _as_texts(FINISHED_COLUMNS)

# LIMIT 1 keeps these from being turned into joins of whole tables.
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


async def held(db: Db, runner: str) -> list[Held]:
    """What a runner runs."""
    return [Held(*row) for row in await db.rows("held", {"runner": runner})]


async def outcomes(db: Db, ids: Sequence[JobId]) -> list[str | None]:
    """Outcomes by tombstones."""
    found: dict[JobId, str] = dict(await db.rows("outcomes", {"ids": list(ids)}))
    return [found.get(id_) for id_ in ids]


async def get(db: Db, ids: Sequence[JobId]) -> list[Job | None]:
    """Jobs with their notes and the ends of their leases."""
    if not ids:
        return []
    found = {}
    for *job, progress, logs, lease_ends in await db.select(_GET, {"ids": list(dict.fromkeys(ids))}):
        found[job[0]] = to_job(tuple(job), (progress, logs), lease_ends)
    return [found.get(id_) for id_ in ids]


async def list_jobs(db: Db, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
    """Newest first; the cursor is the last id of the previous page. Rare matches make short pages, not long scans."""
    before = check_id(cursor, "cursor") if cursor else None
    page_end = max([await _page_end(db, table, before) for table in _walked(wanted)], default="") or None
    bounds = _bound("id < :before::uuid", before) + _bound("id >= :page_end::uuid", page_end)
    parts = [
        f"(SELECT {columns} FROM {table} AS each WHERE {_where(limits + bounds)} ORDER BY each.id DESC LIMIT :limit)"
        for table, columns, limits in _parts(wanted)
    ]
    if not parts:
        return Page((), None)
    values = {**_values(wanted), "before": before, "page_end": page_end, "limit": limit}
    rows = await db.select(" UNION ALL ".join(parts), values)
    rows = sorted(rows, key=lambda row: str(row[0]), reverse=True)[:limit]
    end = rows[-1][0] if rows and len(rows) == limit else page_end
    return Page(tuple(to_job(tuple(row)) for row in rows), end)


def _walked(wanted: JobFilter) -> list[str]:
    """The tables that are scanned, because no index leads to the matches."""
    if wanted.parent:
        return []
    rare = any((wanted.type, wanted.queue, wanted.tenant, wanted.tag, wanted.schedule, wanted.id_end))
    statuses = set(wanted.status) or set(Status)
    live = bool(statuses - FINISHED) and (rare or bool(wanted.status))
    return ["windlass.jobs"] * live + ["windlass.history"] * (rare and Status.COMPLETED in statuses)


async def _page_end(db: Db, table: str, before: JobId | None) -> JobId:
    """The id at which a page ends at the latest; empty if the table ends before."""
    where = _where(_bound("id < :before::uuid", before))
    text = f"SELECT id::text FROM {table} AS each WHERE {where} ORDER BY each.id DESC LIMIT 1 OFFSET :walk"
    rows = await db.select(text, {"before": before, "walk": MAX_WALKED})
    return str(rows[0][0]) if rows else ""


async def select_ids(db: Db, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
    """Oldest first, after a given id."""
    bounds = _bound("id > :after::uuid", after)
    parts = [
        f"(SELECT id::text FROM {table} AS each WHERE {_where(limits + bounds)} ORDER BY each.id LIMIT :limit)"
        for table, _, limits in _parts(wanted)
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
    """The newest of live and dead jobs, each by its own index."""
    jobs = [to_job(tuple(row)) for row in await db.select(_FAILURES, {"limit": limit})]
    return sorted(jobs, key=lambda job: job.updated_at, reverse=True)[:limit]


async def counts(db: Db) -> Counts:
    """Live jobs are counted, finished ones are summed up in history_counts."""
    queues: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(map(str, Status), 0))
    for queue, status, jobs in await db.rows("counts"):
        queues[queue][status] += jobs
    return Counts({name: queues[name] for name in sorted(queues)})


def _parts(wanted: JobFilter) -> list[tuple[str, str, list[str]]]:
    """The tables with possible matches: name, columns, and constant WHERE terms.

    Dead and cancelled jobs are read status by status, as constants, so that the small partial index is used.
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


def _where(limits: Sequence[str]) -> str:
    return " AND ".join(limits) or "true"


def _values(wanted: JobFilter) -> dict[str, Any]:
    return {**{name: getattr(wanted, name) for name in _TERMS}, "status": [str(status) for status in wanted.status]}
