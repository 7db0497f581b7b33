"""get, list, select, counts, failures, why_facts: reads of live and finished jobs."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from windlass.core.ids import JobId, check_id
from windlass.core.jobs.job import Job
from windlass.core.status import FINISHED, Status
from windlass.core.why.facts import WhyFacts
from windlass.store.records import Counts, JobFilter, JobPage, Page
from windlass.store.rows import FINISHED_COLUMNS, LIVE_COLUMNS, WORKER, to_job
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.liveness.workers import live_workers
from windlass.store.sqlite.verbs.queues import queue as read_queue
from windlass.store.sqlite.verbs.schedules import next_tick
from windlass.store.why_facts import (
    SortKey,
    buckets_of,
    holders_of,
    position_of,
    since,
    throughput_of,
    typical_duration_of,
    values_of,
    workers_of,
)

_LATEST = "g"
"""Sorts after every id: ids are hexadecimal."""

MAX_ROWS_PER_PAGE = 10_000
"""How many rows a page reads to find matches: then it ends, short, and the next one goes on."""

_COLUMNS = ("type", "queue", "tenant", "parent", "schedule")

_GET = f"""
SELECT {LIVE_COLUMNS} FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT {FINISHED_COLUMNS} FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))
"""


def get(db: Db, ids: Sequence[JobId]) -> list[Job | None]:
    """Live and finished jobs in one statement: a job that moves between them is found exactly once."""
    found = {row[0]: _with_notes(db, row) for row in db.select(_GET, {"ids": array(ids)})}
    return [found.get(id_) for id_ in ids]


def outcomes(db: Db, ids: Sequence[JobId]) -> list[str | None]:
    """How the last attempts of dropped jobs ended, by their tombstones."""
    found = dict(db.rows("outcomes", {"ids": array(ids), "now": db.now}))
    return [found.get(id_) for id_ in ids]


def _with_notes(db: Db, row: Any) -> Job:
    notes = db.rows("notes", {"job": row[0]})
    worker, ends = row[WORKER], None
    if row[4] == Status.RUNNING and (lease := db.rows("lease", {"runner": worker})):
        # Leases count from boot; people read the wall clock.
        ends = db.now + lease[0][3] - db.clock.since_boot()
    return to_job(row, notes[0] if notes else None, ends)


def list_jobs(db: Db, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
    """Newest first; the cursor is the last id of the page before. Rare matches make short pages, not long scans."""
    before = check_id(cursor, "cursor") if cursor else _LATEST
    last = max((_last_id(db, table, before) for table in _scanned(wanted)), default="")
    values = {**_values(wanted), "before": before, "last": last, "limit": limit}
    parts = [
        f"SELECT {columns} FROM {table} WHERE id < :before AND id >= :last{_where(wanted, finished)}"
        for table, columns, finished in _tables(wanted)
    ]
    if not parts:
        return Page((), None)
    rows = db.select(" UNION ALL ".join(parts) + " ORDER BY id DESC LIMIT :limit", values)
    end = rows[-1][0] if rows and len(rows) == limit else last or None
    return Page(tuple(to_job(row) for row in rows), end)


def _scanned(wanted: JobFilter) -> list[str]:
    """The tables that are read row by row, because no index leads to the matches."""
    if wanted.parent:
        return []
    rare = any((wanted.type, wanted.queue, wanted.tenant, wanted.tag, wanted.schedule, wanted.id_end))
    return [
        table
        for table, _, finished in _tables(wanted)
        if (rare and (not wanted.status or Status.COMPLETED in wanted.status) if finished else rare or wanted.status)
    ]


def _last_id(db: Db, table: str, before: str) -> str:
    """The id at which a page ends at the latest."""
    text = f"SELECT id FROM {table} WHERE id < :before ORDER BY id DESC LIMIT 1 OFFSET :rows"
    rows = db.select(text, {"before": before, "rows": MAX_ROWS_PER_PAGE})
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
    """The newest failed and dead jobs, each by its own index."""
    jobs = [to_job(row) for row in db.select(_FAILURES, {"limit": limit})]
    return sorted(jobs, key=lambda job: job.updated_at, reverse=True)[:limit]


def select(db: Db, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
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
    """Jobs by queue and status."""
    queues: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(map(str, Status), 0))
    for queue, status, jobs in db.rows("counts"):
        queues[queue][status] += jobs
    return Counts({name: queues[name] for name in sorted(queues)})


def _tables(wanted: JobFilter) -> list[tuple[str, str, bool]]:
    """The tables that can have a match."""
    statuses = set(wanted.status) or set(Status)
    tables = []
    if statuses - FINISHED:
        tables.append(("windlass_jobs", LIVE_COLUMNS, False))
    if statuses & FINISHED:
        tables.append(("windlass_history", FINISHED_COLUMNS, True))
    return tables


def _where(wanted: JobFilter, finished: bool) -> str:
    """The one dynamic WHERE, built from constants; every value is bound."""
    terms = [f" AND {column} = :{column}" for column in _COLUMNS if getattr(wanted, column)]
    if wanted.status:
        terms.append(" AND status IN (SELECT value FROM json_each(:status))")
        if finished and Status.COMPLETED not in wanted.status:
            # Explicitly, so that the small index of dead and cancelled jobs is used.
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
        "schedule": wanted.schedule,
        "id_end": wanted.id_end,
    }


def why_facts(db: Db, id: JobId) -> WhyFacts | None:
    """A job and all that may hold it up, from one snapshot; each fact by an index, counted up to a bound."""
    (job,) = get(db, [id])
    if job is None:
        return None
    now, queue = db.now, read_queue(db, job.queue)
    usual = db.rows("typical_durations", {"queue": job.queue, "type": job.type, "since": since(now)["hour"]})
    facts: dict[str, Any] = {"now": now, "job": job, "queue": queue, "typical_duration": typical_duration_of(usual)}
    facts["next_tick"] = next_tick(db, job.schedule)
    if job.status in FINISHED:
        return WhyFacts(**facts)
    if job.status is Status.RUNNING:
        lease = db.rows("lease", {"runner": job.worker})
        return WhyFacts(**facts, worker=lease[0][1] if lease else None)
    values = values_of(job, queue, SortKey(*db.rows("sort_key", {"id": id})[0]), now)
    buckets = buckets_of(db.rows("why_buckets", values))
    return WhyFacts(
        **facts,
        position=position_of(db.rows("queue_position", values)[0], db.rows("tenants_beside", values)),
        parents=holders_of(db.rows("parents", {"ids": array(job.parents), **values})) if job.parents else (),
        runners=holders_of(db.rows("longest_running", values)),
        holders=holders_of(db.rows("slot_holders", values)),
        queue_bucket=buckets.get(""),
        key_bucket=buckets.get(job.concurrency_key) if job.concurrency_key else None,
        workers=workers_of(live_workers(db), job),
        throughput=throughput_of(db.rows("throughput", {"queue": job.queue, "since": since(now)["lately"]})),
    )
