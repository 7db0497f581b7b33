"""Rows ↔ records: jobs, ended attempts, notes, workers and meters as the stores keep them; columns of new jobs."""

import re
from operator import attrgetter
from typing import Any

import msgspec

from windlass.core.codec import UNREADABLE, readable, readable_tags, readable_value
from windlass.core.jobs.job import DEFAULT_KEY_LIMIT, Attempt, Job, JobError, LogLine, NewJob, Progress
from windlass.core.jobs.version import version_of
from windlass.core.moments import SECOND, Micros, to_datetime, to_micros
from windlass.core.stats.meter import COUNTERS, Bins, Histogram, Meter, merge
from windlass.core.status import FINISHED, Status
from windlass.store.records import FailureKey, JobEnd, Note, WorkerInfo

SHARED = (
    "id, queue, type, payload, status, reason, sort_priority, attempt, max_attempts, failures, crashes, rescues, "
    "suspicions, requeues, snoozes, run_at, created_at, updated_at, claimed_at, started_at, worker, "
    "idempotency_key, concurrency_key, tenant, parent, flow, timeout, expires_at, cancel_requested, tags, meta, "
    "error, attempts, idempotency_window, key_limit, key_strict, key_rate, rate_cost, parents, "
    "schedule, tick"
)
"""The columns that live and finished jobs have in common."""

FINISHED_COLUMNS = f"{SHARED}, finished_at, result"

_NAMES = [*SHARED.split(", "), "finished_at", "result"]
_error = msgspec.json.Decoder(JobError)
_MOMENTS = ("run_at", "created_at", "updated_at", "claimed_at", "started_at", "finished_at", "expires_at", "tick")


def to_job(row: tuple[Any, ...], notes: tuple[Any, ...] | None = None, lease_ends: Micros | None = None) -> Job:
    """A row of FINISHED_COLUMNS, as a live job has them too."""
    fields: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
    fields["version"] = version_of(fields["attempt"], fields["updated_at"], fields["payload"])
    fields["attempts"] = _attempts(fields)
    fields["priority"] = -fields.pop("sort_priority")
    fields["status"] = Status(fields["status"])
    fields["cancel_requested"] = bool(fields["cancel_requested"])
    fields["key_strict"] = bool(fields["key_strict"])
    fields["rate_cost"] = fields["rate_cost"] or 1
    if fields["concurrency_key"] is not None:
        fields["key_limit"] = fields["key_limit"] or DEFAULT_KEY_LIMIT
    fields["timeout"] = fields["timeout"] / SECOND if fields["timeout"] else None
    window = fields["idempotency_window"]
    fields["idempotency_window"] = window / SECOND if window else None
    for name in _MOMENTS:
        fields[name] = _moment(fields[name])
    fields["meta"] = None if fields["meta"] is None else readable(fields["meta"])
    for name in ("payload", "result"):
        fields[name] = None if fields[name] is None else readable_value(fields[name])
    for name in ("tags", "parents"):
        fields[name] = readable_tags(fields[name])
    fields["error"] = _error_of(fields["error"])
    fields["progress"], fields["logs"] = notes_of(*notes) if notes else (None, ())
    fields["lease_expires_at"] = _moment(lease_ends)
    return Job(**fields)


def failure_key(job: Job) -> FailureKey:
    """Its position in the list of failures."""
    return to_micros(job.finished_at or job.updated_at), job.id


def to_job_end(row: tuple[Any, ...]) -> JobEnd:
    """A row of the statement `ended`."""
    id_, queue, type_, status, attempt, at, started_at, tenant, schedule, tags, reason, error = row
    return JobEnd(
        id=str(id_),
        queue=queue,
        type=type_,
        status=Status(status),
        attempt=attempt,
        at=at,
        started_at=started_at,
        tenant=tenant,
        schedule=schedule,
        tags=readable_tags(tags),
        reason=reason,
        error=_error_of(error),
    )


def _attempts(fields: dict[str, Any]) -> tuple[Attempt, ...]:
    rows = attempts_of(fields["attempts"])
    if (newest := last_attempt(fields)) is not None:
        rows = [*rows, newest]
    return tuple(
        Attempt(
            attempt=row.attempt,
            outcome=row.outcome,
            worker=row.worker,
            claimed_at=_moment(row.claimed_at),
            started_at=_moment(row.started_at),
            ended_at=_moment(row.ended_at),
            error=row.error,
        )
        for row in rows
    )


def _error_of(stored: Any) -> JobError | None:
    try:
        return _error.decode(stored) if stored else None
    except UNREADABLE:
        return JobError("unreadable", str(readable(stored)))


def _moment(micros: Micros | None) -> Any:
    return None if micros is None else to_datetime(micros)


MAX_ATTEMPTS_KEPT = 50
"""Older attempts are dropped first; the counters keep their number."""


class AttemptRow(msgspec.Struct, frozen=True, omit_defaults=True, rename={"attempt": "n"}):
    """One ended attempt, as kept with its job."""

    attempt: int
    outcome: str
    worker: str | None = None
    claimed_at: Micros | None = None
    started_at: Micros | None = None
    ended_at: Micros | None = None
    error: JobError | None = None


def add_attempt(kept: str | None, entry: AttemptRow) -> str:
    """The list of ended attempts with one more, bounded."""
    entries = [*attempts_of(kept), entry][-MAX_ATTEMPTS_KEPT:]
    return msgspec.json.encode(entries).decode()


def attempts_of(kept: str | None) -> list[AttemptRow]:
    """The ended attempts of a job, oldest first; none if the stored text is unreadable."""
    try:
        return _decoder.decode(kept) if kept else []
    except UNREADABLE:
        return []


def last_attempt(fields: dict[str, Any]) -> AttemptRow | None:
    """The newest attempt, which only the job's own columns describe: it runs, or it just completed."""
    ended = attempts_of(fields["attempts"])
    known = ended[-1].attempt if ended else 0
    if fields["attempt"] <= known or fields["status"] not in FINISHED | {Status.RUNNING}:
        return None
    if fields["claimed_at"] is None:
        return None
    return AttemptRow(
        attempt=fields["attempt"],
        outcome=str(fields["status"]),
        worker=fields["worker"],
        claimed_at=fields["claimed_at"],
        started_at=fields["started_at"],
        ended_at=fields["finished_at"],
    )


_decoder = msgspec.json.Decoder(list[AttemptRow])


MAX_LINES = 200
MAX_LINE_LENGTH = 1000

_lines = msgspec.json.Decoder(list[LogLine])
_progress = msgspec.json.Decoder(Progress)


def add_note(progress: str | None, logs: str | None, each: Note) -> tuple[str | None, str | None]:
    """The kept notes with one more: the newer progress, the newest lines."""
    lines = [*_lines_of(logs), *map(_cut, each.lines)]
    return (
        msgspec.json.encode(each.progress).decode() if each.progress else progress,
        msgspec.json.encode(lines[-MAX_LINES:]).decode() if lines else None,
    )


def _cut(line: LogLine) -> LogLine:
    return msgspec.structs.replace(line, text=line.text[:MAX_LINE_LENGTH])


def notes_of(progress: str | None, logs: str | None) -> tuple[Progress | None, tuple[LogLine, ...]]:
    """Progress and log lines; unreadable ones count as none."""
    try:
        kept = _progress.decode(progress) if progress else None
    except UNREADABLE:
        kept = None
    return kept, tuple(_lines_of(logs))


def _lines_of(logs: str | None) -> list[LogLine]:
    try:
        return _lines.decode(logs) if logs else []
    except UNREADABLE:
        return []


SILENT_AFTER: Micros = 60 * SECOND
"""A worker without a liveness lock that is silent for this long is not listed as alive."""

_info = msgspec.json.Decoder(WorkerInfo)


def info_of(stored: str) -> WorkerInfo:
    return _info.decode(stored)


def to_worker(info: str, started_at: Micros, beat_at: Micros, running: int) -> WorkerInfo:
    """A listed worker, with the number of jobs that it holds."""
    times = {"started_at": to_datetime(started_at), "beat_at": to_datetime(beat_at)}
    return msgspec.structs.replace(info_of(info), running=running, **times)


_bins = msgspec.json.Decoder(Bins)
_many_bins = msgspec.json.Decoder(list[Bins])
_OBJECT = re.compile(r"\{[^{}]*\}")


def meter_values(start: Micros, meter: Meter) -> dict[str, Any]:
    """A meter's values by column."""
    values: dict[str, Any] = {name: getattr(meter, name) for name in ("queue", "type", *COUNTERS)}
    for name in ("wait", "run"):
        values[name] = msgspec.json.encode(getattr(meter, name).bins).decode()
    return {"interval_start": start, **values}


def to_meter(row: tuple[Any, ...]) -> Meter:
    """A row of interval start, queue, type, the counters in order, wait and run."""
    *named, wait, run = row
    return _meter(named, histogram_of(wait), histogram_of(run))


def to_summed_meter(row: tuple[Any, ...]) -> Meter:
    """The same, with lists of histograms."""
    *named, waits, runs = row
    return _meter(named, merged_histogram(waits), merged_histogram(runs))


def _meter(named: list[Any], wait: Histogram, run: Histogram) -> Meter:
    start, queue, type_, *counted = named
    counters = dict(zip(COUNTERS, counted, strict=True))
    return Meter(interval_start=start, queue=queue, type=type_, wait=wait, run=run, **counters)


def histogram_of(stored: Any) -> Histogram:
    """A histogram; an unreadable one counts as empty."""
    try:
        return Histogram(_bins.decode(stored))
    except UNREADABLE:
        return Histogram()


def merged_histogram(stored: str) -> Histogram:
    """The sum of a list of histograms; an unreadable one counts as empty."""
    try:
        return merge(_many_bins.decode(stored))
    except UNREADABLE:
        return merge(histogram_of(each).bins for each in _OBJECT.findall(stored))


PER_JOB = ("id", "payload", "idempotency_key", "concurrency_key")
"""Columns that differ between jobs of one task and batch."""

per_job_values = attrgetter(*PER_JOB)
shared_values = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in PER_JOB))

PER_CHILD = ("parent", "flow", "parents", "result_params", "meta")
"""Columns that differ between links of one task and batch."""

shared_child_values = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in (*PER_JOB, *PER_CHILD)))


def key_columns(job: NewJob) -> dict[str, Any]:
    """Concurrency key and start cost of a job, by column; NULL is the default."""
    return {
        "key_limit": job.key_limit,
        "key_strict": job.key_strict,
        "key_rate": None if job.key_rate is None else str(job.key_rate),
        "rate_cost": job.rate_cost,
    }
