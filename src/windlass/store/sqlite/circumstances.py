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
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.look import get
from windlass.store.sqlite.queues import queue
from windlass.store.sqlite.schedules import next_tick
from windlass.store.sqlite.workers import live_workers


def circumstances(db: Db, id_: JobId) -> Circumstances | None:
    """All in one transaction: one picture."""
    (job,) = get(db, [id_])
    if job is None:
        return None
    now, its_queue = db.now, queue(db, job.queue)
    usual = db.rows("usual", {"queue": job.queue, "type": job.type, "since": since(now)["hour"]})
    facts: dict[str, Any] = {"now": now, "job": job, "queue": its_queue, "usual": usual_of(usual)}
    facts["next_tick"] = next_tick(db, job.schedule)
    if job.status in FINISHED:
        return Circumstances(**facts)
    if job.status is Status.RUNNING:
        lease = db.rows("lease", {"runner": job.worker})
        return Circumstances(**facts, worker=lease[0][1] if lease else None)
    values = values_of(job, its_queue, Standing(*db.rows("whereabouts", {"id": id_})[0]), now)
    buckets = buckets_of(db.rows("buckets", values))
    return Circumstances(
        **facts,
        place=place_of(db.rows("place", values)[0], db.rows("neighbours", values)),
        parents=holders_of(db.rows("parents", {"ids": array(job.parents), **values})) if job.parents else (),
        runners=holders_of(db.rows("longest_running", values)),
        holders=holders_of(db.rows("slot_holders", values)),
        queue_bucket=buckets.get(""),
        key_bucket=buckets.get(job.concurrency_key) if job.concurrency_key else None,
        crew=crew_of(live_workers(db), job),
        pace=pace_of(db.rows("pace", {"queue": job.queue, "since": since(now)["lately"]})),
    )
