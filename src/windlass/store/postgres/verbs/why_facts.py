"""why_facts: a job and what it may wait for, each fact by an index and none counted without a bound."""

from typing import Any

from windlass.core.ids import JobId
from windlass.core.status import FINISHED, Status
from windlass.core.why.facts import WhyFacts
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.liveness.workers import live_workers
from windlass.store.postgres.verbs.queues import queue
from windlass.store.postgres.verbs.read_jobs import get
from windlass.store.postgres.verbs.schedules import next_tick
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


async def why_facts(db: Db, id: JobId) -> WhyFacts | None:
    """Statement by statement; if the job moves on in between, all is read again."""
    (job,) = await get(db, [id])
    if job is None:
        return None
    now, its_queue = await db.now(), await queue(db, job.queue)
    usual = await db.rows("typical_durations", {"queue": job.queue, "type": job.type, "since": since(now)["hour"]})
    facts: dict[str, Any] = {
        "now": now,
        "job": job,
        "queue": its_queue,
        "typical_duration": typical_duration_of(usual),
    }
    facts["next_tick"] = await next_tick(db, job.schedule)
    if job.status in FINISHED:
        return WhyFacts(**facts)
    if job.status is Status.RUNNING:
        lease = await db.rows("worker_of_runner", {"runner": job.worker})
        return WhyFacts(**facts, worker=lease[0][0] if lease else None)
    standing = await db.rows("sort_key", {"id": id})
    if not standing:
        return await why_facts(db, id)
    values = values_of(job, its_queue, SortKey(*standing[0]), now)
    buckets = buckets_of(await db.rows("buckets", values))
    return WhyFacts(
        **facts,
        position=position_of((await db.rows("position", values))[0], await db.rows("waiting_tenants", values)),
        parents=holders_of(await db.rows("parents", {"ids": list(job.parents), **values})) if job.parents else (),
        runners=holders_of(await db.rows("longest_running", values)),
        holders=holders_of(await db.rows("slot_holders", values)),
        queue_bucket=buckets.get(""),
        key_bucket=buckets.get(job.concurrency_key) if job.concurrency_key else None,
        workers=workers_of(await live_workers(db), job),
        throughput=throughput_of(await db.rows("throughput", {"queue": job.queue, "since": since(now)["lately"]})),
    )
