"""circumstances: a job and all that may hold it up, each fact by an index and none counted for ever."""

from typing import Any

from windlass.core.circumstances import Circumstances
from windlass.core.ids import JobId
from windlass.core.status import FINISHED, Status
from windlass.store.circumstances import (
    Standing,
    buckets_of,
    crew_of,
    holders_of,
    pace_of,
    place_of,
    since,
    usual_of,
    values_of,
)
from windlass.store.postgres.db import Db
from windlass.store.postgres.look import get
from windlass.store.postgres.queues import queue
from windlass.store.postgres.schedules import next_tick
from windlass.store.postgres.workers import live_workers


async def circumstances(db: Db, id_: JobId) -> Circumstances | None:
    """Statement by statement: in between the job may have moved on, and then it is looked at anew."""
    (job,) = await get(db, [id_])
    if job is None:
        return None
    now, its_queue = await db.now(), await queue(db, job.queue)
    usual = await db.rows("usual", {"queue": job.queue, "type": job.type, "since": since(now)["hour"]})
    facts: dict[str, Any] = {"now": now, "job": job, "queue": its_queue, "usual": usual_of(usual)}
    facts["next_tick"] = await next_tick(db, job.schedule)
    if job.status in FINISHED:
        return Circumstances(**facts)
    if job.status is Status.RUNNING:
        lease = await db.rows("employer", {"runner": job.worker})
        return Circumstances(**facts, worker=lease[0][0] if lease else None)
    standing = await db.rows("whereabouts", {"id": id_})
    if not standing:
        return await circumstances(db, id_)
    values = values_of(job, its_queue, Standing(*standing[0]), now)
    buckets = buckets_of(await db.rows("buckets", values))
    return Circumstances(
        **facts,
        place=place_of((await db.rows("place", values))[0], await db.rows("neighbours", values)),
        parents=holders_of(await db.rows("parents", {"ids": list(job.parents), **values})) if job.parents else (),
        runners=holders_of(await db.rows("longest_running", values)),
        holders=holders_of(await db.rows("slot_holders", values)),
        queue_bucket=buckets.get(""),
        key_bucket=buckets.get(job.concurrency_key) if job.concurrency_key else None,
        crew=crew_of(await live_workers(db), job),
        pace=pace_of(await db.rows("pace", {"queue": job.queue, "since": since(now)["lately"]})),
    )
