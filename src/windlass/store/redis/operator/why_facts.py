"""why_facts: a job and all that may hold it up, each fact by an index, in bounded calls."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.stats.meter import METER_RETENTION, Histogram, Recent
from windlass.core.status import FINISHED, Status
from windlass.core.why.estimate import LATELY
from windlass.core.why.facts import MAX_NAMED, MAX_TENANTS, Holder, Throughput, WhyFacts
from windlass.store.redis.connection.access import Access
from windlass.store.redis.duties.prune import to_token_bucket
from windlass.store.redis.liveness.workers import live_workers, worker_of
from windlass.store.redis.operator.queues import QueueState, read_queues
from windlass.store.redis.operator.read_jobs import find, jobs_of
from windlass.store.redis.operator.read_records import FoundJob
from windlass.store.redis.records.record import STATUS, Record
from windlass.store.redis.schedules.read_schedules import next_tick
from windlass.store.redis.verbs.stats import recent
from windlass.store.why_facts import SortKey, position_of, values_of, workers_of


async def why_facts(access: Access, id_: JobId) -> WhyFacts | None:
    """A job and everything that may delay it, by several reads; its queue is one consistent read."""
    found = (await find(access, [id_])).get(id_)
    if found is None:
        return None
    kept = (await read_queues(access, [found.queue]))[found.queue]
    measured = await recent(access, METER_RETENTION, found.queue)
    typical_duration = _typical_duration(measured, found)
    job = (await jobs_of(access, {id_: found}))[id_]
    facts: dict[str, Any] = {"now": kept.now, "job": job, "queue": kept.queue, "typical_duration": typical_duration}
    facts["next_tick"] = await next_tick(access, job.schedule)
    if job.parents:
        facts["parents"] = await _parents(access, job)
    if job.status in FINISHED:
        return WhyFacts(**facts)
    if job.status is Status.RUNNING:
        return WhyFacts(**facts, worker=await worker_of(access, found.record.runner))
    around = await access.call("why_facts", found.queue, _request(found.record, job, kept))
    counts, tenants, runners, holders, of_queue, of_key = around
    return WhyFacts(
        **facts,
        position=position_of(counts, [(tenant.decode(),) for tenant in tenants]),
        runners=_holders(runners),
        holders=_holders(holders),
        queue_token_bucket=to_token_bucket(of_queue) if of_queue else None,
        key_token_bucket=to_token_bucket(of_key) if of_key else None,
        workers=workers_of(await live_workers(access), job),
        throughput=_throughput(measured.since(LATELY), found.queue),
    )


async def _parents(access: Access, job: Job) -> tuple[Holder, ...]:
    """The parents of a job, those that have not ended first."""
    found = [each.record for each in (await find(access, job.parents)).values()]
    found.sort(key=lambda record: record.finished)
    return tuple(
        Holder(each.id, each.status, each.claimed_at or each.updated_at, each.run_at, each.runner or None)
        if each.status is Status.RUNNING
        else Holder(each.id, each.status, each.updated_at, each.run_at, each.runner or None)
        for each in found[:MAX_NAMED]
    )


def _request(record: Record, job: Job, kept: QueueState) -> tuple[Any, ...]:
    """The request of why_facts.lua."""
    values = values_of(job, kept.queue, SortKey(record.sort_priority, record.rank), kept.now)
    waits = values["waits_for_key"]
    return (
        values["id"],
        values["sort_priority"],
        values["rank"],
        record.fields.concurrency_digest or False,
        values["key_priority"] if waits else False,
        values["key_rank"] if waits else False,
        values["tenant_queue"] if values["fair"] else False,
        MAX_TENANTS,
        MAX_NAMED,
    )


def _holders(rows: Iterable[Sequence[Any]]) -> tuple[Holder, ...]:
    return tuple(
        Holder(id_.decode(), STATUS[letter], since, run_at, runner.decode() or None)
        for id_, letter, since, run_at, runner in rows
    )


def _typical_duration(measured: Recent, found: FoundJob) -> Histogram:
    """How long attempts of its type took in its queue."""
    runs = [
        each.run for each in measured.meters if (each.queue, each.type) == (found.queue, found.record.fields.type)
    ]
    return reduce(Histogram.merge, runs, Histogram())


def _throughput(measured: Recent, queue: str) -> Throughput:
    """How many attempts of its queue ended, by interval."""
    ended: Counter[int] = Counter()
    for each in measured.meters:
        if each.queue == queue:
            ended[each.interval_start] += each.ended
    return Throughput(dict(ended))
