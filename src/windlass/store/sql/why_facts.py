"""why_facts: a job and what it may be waiting for; each fact is read by an index, and each count has a bound."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from windlass.core.flow.rate import TokenBucket
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.moments import Micros
from windlass.core.stats.meter import METER_RETENTION, Histogram, interval_of
from windlass.core.status import FINISHED, Status
from windlass.core.why.estimate import LATELY
from windlass.core.why.facts import Holder, Throughput, WhyFacts
from windlass.store.records import WorkerInfo
from windlass.store.rows import histogram_of
from windlass.store.sql.queues import queue
from windlass.store.sql.read_jobs import get
from windlass.store.sql.schedules import next_tick
from windlass.store.sql.session import Session
from windlass.store.why_facts import SortKey, position_of, values_of, workers_of

LiveWorkers = Callable[[Any], Awaitable[list[WorkerInfo]]]


async def why_facts(db: Session, id: JobId, live_workers: LiveWorkers) -> WhyFacts | None:
    """Read the facts statement by statement; if the job finishes meanwhile, read them all again."""
    (job,) = await get(db, [id])
    if job is None:
        return None
    now = await db.now()
    facts: dict[str, Any] = {
        "now": now,
        "job": job,
        "queue": await queue(db, job.queue),
        "typical_duration": await _typical_duration(db, job, now),
        "next_tick": await next_tick(db, job.schedule),
    }
    if job.status in FINISHED:
        return WhyFacts(**facts)
    if job.status is Status.RUNNING:
        lease = await db.rows("worker_of_runner", {"runner": job.worker})
        return WhyFacts(**facts, worker=lease[0][0] if lease else None)
    sort_key = await db.rows("sort_key", {"id": id})
    if not sort_key:
        return await why_facts(db, id, live_workers)
    values = values_of(job, facts["queue"], SortKey(*sort_key[0]), now)
    token_buckets = {
        key: TokenBucket(*token_bucket) for key, *token_bucket in await db.rows("why_token_buckets", values)
    }
    recent = {"queue": job.queue, "since": interval_of(now - LATELY)}
    return WhyFacts(
        **facts,
        position=position_of((await db.rows("queue_position", values))[0], await db.rows("waiting_tenants", values)),
        parents=_holders(await db.rows("parents", {"ids": list(job.parents), **values})) if job.parents else (),
        runners=_holders(await db.rows("longest_running", values)),
        holders=_holders(await db.rows("key_slot_holders", values)),
        queue_token_bucket=token_buckets.get(""),
        key_token_bucket=token_buckets.get(job.concurrency_key) if job.concurrency_key else None,
        workers=workers_of(await live_workers(db), job),
        throughput=Throughput({start: int(ended) for start, ended in await db.rows("throughput", recent)}),
    )


async def _typical_duration(db: Session, job: Job, now: Micros) -> Histogram:
    values = {"queue": job.queue, "type": job.type, "since": interval_of(now - METER_RETENTION)}
    rows = await db.rows("typical_durations", values)
    return reduce(Histogram.merge, (histogram_of(run) for (run,) in rows), Histogram())


def _holders(rows: Iterable[Sequence[Any]]) -> tuple[Holder, ...]:
    """Holders from rows of id, status, since when, run_at and runner."""
    return tuple(Holder(id_, Status(status), at, run_at, runner) for id_, status, at, run_at, runner in rows)
