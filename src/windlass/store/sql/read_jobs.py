"""get, list, select, count_completed, counts, failures: read jobs, live or finished.

One statement reads live and finished jobs: in its snapshot a job that moves between the tables is found exactly once.
"""

from collections import defaultdict
from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

from windlass.core.ids import JobId, check_id
from windlass.core.jobs.job import Job
from windlass.core.status import FINISHED, Status
from windlass.store.records import NEWEST, Counts, FailureKey, Held, JobFilter, JobPage, Page
from windlass.store.rows import FINISHED_COLUMNS, SHARED, failure_key, to_job
from windlass.store.sql.session import Session, SharedRole, reading

MAX_ROWS_PER_PAGE = 10_000
"""Rows that are scanned for the matches of one page, which may therefore be short; the next page continues."""

_UUIDS = ("id", "parent")
_LETTERS = tuple(a + b for a in ascii_lowercase for b in ascii_lowercase)
"""Suffixes of parameters, whose names have no digits."""
_TERMS = {
    "type": "type = :type",
    "queue": "queue = :queue",
    "tenant": "tenant = :tenant",
    "schedule": "schedule = :schedule",
    "parent": "parent = :parent::uuid",
    # A search in the text: exact because of the characters allowed in tags, and no invalid content makes it fail.
    "tag": "replace(tags, '\"' || :tag::text || '\"', '') <> tags",
    "id_end": "substr(id::text, length(id::text) + 1 - length(:id_end::text)) = :id_end::text",
    "queues": "queue = ANY(:queues::text[])",
    "types": "type = ANY(:types::text[])",
}


_CONTAINS = {
    "type": "strpos(type, :contains{}::text) > 0",
    "payload": "strpos(payload, :contains{}::text) > 0",
    "error": 'strpos(lower(error COLLATE "C"), :contains{}::text) > 0',
}


def _as_texts(columns: str) -> str:
    return ", ".join(f"{name}::text" if name in _UUIDS else name for name in columns.split(", "))


_AS_ENQUEUED = SHARED.replace("sort_priority", "sort_priority + aged_by AS sort_priority").replace(
    # Not every store writes updated_at at a claim.
    "updated_at",
    "CASE WHEN status = 'running' AND claimed_at > updated_at THEN claimed_at ELSE updated_at END AS updated_at",
)
_LIVE = _as_texts(f"{_AS_ENQUEUED}, NULL::bigint AS finished_at, NULL::text AS result")
_FINISHED = _as_texts(FINISHED_COLUMNS)

_NOTES = """
    (SELECT progress FROM windlass.notes AS note WHERE note.job = found.id),
    (SELECT logs FROM windlass.notes AS note WHERE note.job = found.id)
"""
_GET = f"""
SELECT {_LIVE}, {_NOTES},
    (SELECT expires_at FROM windlass.leases WHERE found.status = 'running' AND runner = found.worker)
FROM windlass.jobs AS found WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT {_FINISHED}, {_NOTES}, NULL FROM windlass.history AS found WHERE id = ANY(:ids::uuid[])
"""


async def get(db: Session, ids: Sequence[JobId]) -> list[Job | None]:
    """Jobs with their notes and the end of the lease under which each runs."""
    if not ids:
        return []
    found = {}
    for *job, progress, logs, lease_ends in await db.select(_GET, {"ids": list(dict.fromkeys(ids))}):
        ends = None if lease_ends is None else db.wall_time(lease_ends)
        found[job[0]] = to_job(tuple(job), (progress, logs), ends)
    return [found.get(id_) for id_ in ids]


async def held(db: Session, runner: str) -> list[Held]:
    """The running jobs of a runner."""
    return [Held(*row) for row in await db.rows("held", {"runner": runner})]


async def outcomes(db: Session, ids: Sequence[JobId]) -> list[str | None]:
    """How the last attempts of dropped jobs ended, by their tombstones."""
    found: dict[JobId, str] = dict(map(tuple, await db.rows("outcomes", {"ids": list(ids)})))
    return [found.get(id_) for id_ in ids]


async def list_jobs(db: Session, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
    """A page of jobs, the newest first, from the cursor on. Rare matches make short pages, not long scans."""
    before = check_id(cursor, "cursor") if cursor else None
    before = min(filter(None, (before, wanted.id_before)), default=None)
    page_end = max([await _page_end(db, table, before) for table in _scanned(wanted)], default="") or None
    bounds = _bound("id < :before::uuid", before) + _bound("id >= :page_end::uuid", page_end)
    selects = [
        f"SELECT {columns} FROM {table} AS found WHERE {_where(terms + bounds)} ORDER BY found.id DESC LIMIT :limit"
        for table, columns, terms in _parts(wanted)
    ]
    parts = [_by_id(db, wanted, select, "DESC") for select in selects]
    if not parts:
        return Page((), None)
    values = {**_values(wanted), "before": before, "page_end": page_end, "limit": limit}
    rows = await db.select(_union(parts), values)
    rows = sorted(rows, key=lambda row: str(row[0]), reverse=True)[:limit]
    end = rows[-1][0] if rows and len(rows) == limit else page_end
    return Page(tuple(to_job(row) for row in rows), end)


def _scanned(wanted: JobFilter) -> list[str]:
    """The tables that are scanned row by row, because no index leads to the matches."""
    if wanted.parent:
        return []
    rare = bool(wanted.contains) or any(getattr(wanted, name) for name in _TERMS)
    statuses = set(wanted.status) or set(Status)
    live = bool(statuses - FINISHED) and (rare or bool(wanted.status))
    return ["windlass.jobs"] * live + ["windlass.history"] * (rare and Status.COMPLETED in statuses)


async def _page_end(db: Session, table: str, before: JobId | None) -> JobId:
    """The lowest id that a page scans; empty if the table ends first."""
    where = _where(_bound("id < :before::uuid", before))
    text = f"SELECT id::text FROM {table} AS found WHERE {where} ORDER BY found.id DESC LIMIT :limit OFFSET :rows"
    values = {"before": before, "rows": max(1, MAX_ROWS_PER_PAGE // db.buckets), "limit": 1}
    rows = await db.select(db.by_id(text, "DESC"), values)
    return str(rows[0][0]) if rows else ""


async def select(db: Session, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
    """Ids of matching jobs, the oldest first, after a given id."""
    bounds = _bound("id > :after::uuid", after) + _bound("id < :before::uuid", wanted.id_before)
    parts = [
        _by_id(
            db,
            wanted,
            f"SELECT id::text FROM {table} AS found WHERE {_where(terms + bounds)} ORDER BY found.id LIMIT :limit",
            "ASC",
        )
        for table, _, terms in _parts(wanted)
    ]
    if not parts:
        return []
    rows = await db.select(
        _union(parts), {**_values(wanted), "after": after, "before": wanted.id_before, "limit": limit}
    )
    return sorted(str(row[0]) for row in rows)[:limit]


async def count_completed(db: Session, parent: JobId, after: JobId, before: JobId) -> tuple[int, JobId | None]:
    """How many children between two ids have completed, up to the first live one, and the id of that one."""
    completed, live = (await db.rows("count_completed", {"parent": parent, "after": after, "before": before}))[0]
    return completed, live


async def failures(db: Session, limit: int, before: FailureKey = NEWEST) -> list[Job]:
    """The newest failed and dead jobs, each by its own index."""
    text = _union(
        [
            f"SELECT {_LIVE} FROM windlass.jobs AS job WHERE {db.is_failed} AND job.updated_at <= :at "
            "AND (job.updated_at < :at OR job.id < :id::uuid) ORDER BY job.updated_at DESC, job.id DESC LIMIT :limit",
            f"SELECT {_FINISHED} FROM {db.dead_history} AS job WHERE status = 'dead' AND finished_at <= :at "
            "AND (finished_at < :at OR job.id < :id::uuid) ORDER BY finished_at DESC, job.id DESC LIMIT :limit",
        ]
    )
    jobs = [to_job(row) for row in await db.select(text, {"limit": limit, "at": before[0], "id": before[1]})]
    return sorted(jobs, key=failure_key, reverse=True)[:limit]


async def counts(db: Session) -> Counts:
    """Jobs by queue and status: live ones are counted by indexes, finished ones by their stored counts."""
    queues: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(map(str, Status), 0))
    for queue, status, jobs in await db.rows("counts"):
        queues[queue][status] += jobs
    return Counts({name: queues[name] for name in sorted(queues)})


def _parts(wanted: JobFilter) -> list[tuple[str, str, list[str]]]:
    """The tables with possible matches: name, columns, and constant WHERE terms.

    Dead and cancelled jobs are read status by status, as constants, so that the small partial index is used.
    """
    fields = [term for name, term in _TERMS.items() if getattr(wanted, name)]
    fields += [_CONTAINS[each.field].format(_LETTERS[i]) for i, each in enumerate(wanted.contains)]
    any_status = ["status = ANY(:status::text[])"] if wanted.status else []
    statuses = set(wanted.status) or set(Status)
    parts = []
    if statuses - FINISHED:
        parts.append(("windlass.jobs", _LIVE, [*any_status, *fields]))
    if Status.COMPLETED in statuses:
        parts.append(("windlass.history", _FINISHED, [*any_status, *fields]))
    else:
        for status in sorted(statuses & FINISHED):
            terms = [f"status = '{status}'", "status <> 'completed'", *fields]
            parts.append(("windlass.history", _FINISHED, terms))
    return parts


def _by_id(db: Session, wanted: JobFilter, select: str, order: str) -> str:
    """The select in the order of ids; the index of children has that order already, whatever their buckets."""
    return select if wanted.parent else db.by_id(select, order)


def _bound(term: str, value: JobId | None) -> list[str]:
    return [] if value is None else [term]


def _where(terms: Sequence[str]) -> str:
    return " AND ".join(terms) or "true"


def _union(parts: Sequence[str]) -> str:
    """A union of selects that keep their own order and limit."""
    return " UNION ALL ".join(f"SELECT * FROM ({part}) AS part" for part in parts)


def _values(wanted: JobFilter) -> dict[str, Any]:
    texts = {f"contains{_LETTERS[i]}": each.text for i, each in enumerate(wanted.contains)}
    lists = {"status": list(map(str, wanted.status)), "queues": list(wanted.queues), "types": list(wanted.types)}
    return {**{name: getattr(wanted, name) for name in _TERMS}, **lists, **texts}


class ReadVerbs(SharedRole):
    """Reads of jobs."""

    get = reading(get)
    outcomes = reading(outcomes)
    select = reading(select)
    count_completed = reading(count_completed)
    counts = reading(counts)
    failures = reading(failures)
    list = reading(list_jobs)
