"""End attempts that are not plain completions, many at once."""

from collections.abc import Sequence
from typing import Any

from windlass.core.flow.queue import DEFAULT_RETENTION
from windlass.core.status import FINISHED, Status
from windlass.store.ending import Ending, Running, ending_values, resolve
from windlass.store.keys import Keyed
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.dependencies.dependents import after_parents_ended
from windlass.store.postgres.history.prune import drop
from windlass.store.postgres.limits import watermarks
from windlass.store.postgres.limits.idempotency_keys import release

_COUNTERS = ("failures", "crashes", "rescues", "suspicions", "requeues", "snoozes")


async def end(db: Db, endings: Sequence[tuple[Running, Ending]]) -> list[Status]:
    """Finished jobs go into history, the others back to waiting; returns the new status of each.

    The caller has locked the jobs in this transaction.
    """
    if not endings:
        return []
    now = await db.now()
    resolved = [(job, resolve(job, ending, now)) for job, ending in endings]
    values = [{**ending_values(job, ending, now), "ending": ending, "job": job} for job, ending in resolved]
    await _finish(db, [each for each in values if each["ending"].status in FINISHED])
    await _put_back(db, [each for each in values if each["ending"].status is Status.PENDING])
    await _put_off(db, [each for each in values if each["ending"].status in (Status.FAILED, Status.SCHEDULED)])
    return [ending.status for _, ending in resolved]


async def _finish(db: Db, values: list[dict[str, Any]]) -> None:
    if not values:
        return
    columns = {
        **_columns(values, *_COUNTERS, "attempts"),
        "started": [each["started_at"] for each in values],
        "results": [each["ending"].result for each in values],
        "keep_completed": DEFAULT_RETENTION[Status.COMPLETED],
        "keep_cancelled": DEFAULT_RETENTION[Status.CANCELLED],
        "keep_dead": DEFAULT_RETENTION[Status.DEAD],
        "statuses": [str(each["ending"].status) for each in values],
    }
    rows = await db.rows("finish", columns)
    jobs: list[Running] = [each["job"] for each in values]
    await db.rows("notify_result_waits", {"ids": [job.id for job in jobs]})
    await release(db, [Keyed(job.id, job.queue, job.idempotency_key, job.idempotency_window) for job in jobs])
    if awaited := {id_ for id_, _, has_dependents in rows if has_dependents}:
        await after_parents_ended(db, {each["id"]: each["ending"].status for each in values if each["id"] in awaited})
    await drop(db, [id_ for id_, unkept, _ in rows if unkept])


async def _put_back(db: Db, values: list[dict[str, Any]]) -> None:
    """Requeued and rescued jobs keep their rank."""
    if values:
        columns = _columns(values, "crashes", "rescues", "suspicions", "requeues", "attempts")
        await watermarks.lower(db, [tuple(row) for row in await db.rows("requeue", columns)])


async def _put_off(db: Db, values: list[dict[str, Any]]) -> None:
    if not values:
        return
    columns = {
        **_columns(values, "failures", "snoozes", "requeues", "attempts"),
        "delays": [each["ending"].delay for each in values],
        "statuses": [str(each["ending"].status) for each in values],
    }
    await db.run("reschedule", columns)


def _columns(values: list[dict[str, Any]], *names: str) -> dict[str, list[Any]]:
    own = {name: [each[name] for each in values] for name in names}
    return {
        **own,
        "ids": [each["id"] for each in values],
        "reasons": [each["reason"] for each in values],
        "errors": [each["error"] for each in values],
    }
