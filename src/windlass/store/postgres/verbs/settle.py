"""settle, note: record what runners report about attempts, fenced by (job, attempt)."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from windlass.core.flow.queue import DEFAULT_RETENTION, TOMBSTONE_RETENTION
from windlass.core.ids import JobId
from windlass.core.jobs.outcome import Ending, Settlement
from windlass.core.status import FINISHED, Status
from windlass.errors import StoreUnavailable
from windlass.store.ending import Running, ending_values, is_repeat, resolve
from windlass.store.keys import Keyed
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.db import Db, pack_ids, pack_numbers, pack_texts
from windlass.store.postgres.connection.trouble import state_of
from windlass.store.postgres.limits import watermarks
from windlass.store.postgres.limits.idempotency_keys import release
from windlass.store.postgres.verbs.dependents import after_parents_ended
from windlass.store.postgres.verbs.prune import drop
from windlass.store.records import Note, Settled
from windlass.store.rows import add_note

_COUNTERS = ("failures", "crashes", "rescues", "suspicions", "requeues", "snoozes")
_UNIQUE_VIOLATION = "23505"


async def settle(access: Access, settlements: Sequence[Settlement]) -> tuple[list[Settled], bool]:
    """Settle attempts; returns the answer for each, and whether other jobs may run now.

    A job that is also in history cannot be moved there: it is deleted, so that it does not block its batch for ever.
    """
    try:
        return await _settle(access, settlements)
    except StoreUnavailable as error:
        if error.__cause__ is None or state_of(error.__cause__) != _UNIQUE_VIOLATION:
            raise
    await access.write(lambda db: _drop_duplicates(db, [s.id for s in settlements]))
    return await _settle(access, settlements)


async def _drop_duplicates(db: Db, ids: list[JobId]) -> None:
    """Delete live jobs that are also in history: they were enqueued again by a transaction that did not see that."""
    rows = await db.rows("drop_duplicates", {"ids": ids})
    await release(db, [Keyed(*row[:4]) for row in rows])
    if awaited := [row[0] for row in rows if row[4]]:
        await after_parents_ended(
            db, {row[0]: Status(row[1]) for row in await db.rows("lock_finished", {"ids": awaited})}
        )


async def _settle(access: Access, settlements: Sequence[Settlement]) -> tuple[list[Settled], bool]:
    """Settle completions by one statement; then the others, and jobs not running as stated, in a transaction."""
    # In the order of ids, as everywhere, to avoid deadlocks.
    plain = sorted((s for s in settlements if s.status is Status.COMPLETED), key=attrgetter("id"))
    if len({s.id for s in settlements}) != len(settlements):
        plain = []
    missing = await access.ending_waits().once(lambda db: _complete(db, plain)) if plain else set()
    # None among the missing ids means that dependents may run.
    ready = None in missing
    done = {s.id for s in plain if s.id not in missing}
    rest = [s for s in settlements if s.id not in done] if len(done) < len(settlements) else []
    answers = dict.fromkeys(range(len(settlements)), Settled.SETTLED)
    if rest:
        found = iter(await _after(access, rest, doubtful=bool(done)))
        answers |= {i: next(found) for i, s in enumerate(settlements) if s.id not in done}
        ready = ready or any(s.status in (Status.COMPLETED, Status.PENDING) for s in rest)
    return list(answers.values()), ready


async def _after(access: Access, rest: Sequence[Settlement], *, doubtful: bool) -> list[Settled]:
    """Settle the others. If that fails after completions were settled, the error says that something may be done."""
    try:
        return await access.ending_waits().write(lambda db: _settle_others(db, rest))
    except StoreUnavailable as error:
        error.maybe_done = error.maybe_done or doubtful
        raise


async def _complete(db: Db, settlements: Sequence[Settlement]) -> set[JobId | None]:
    """Move completed jobs into history; returns the ids of those that were not running as stated.

    The value None is among the ids if dependents may run now.
    """
    values = {
        "ids": pack_ids([s.id for s in settlements]),
        "attempts": pack_numbers([s.attempt for s in settlements]),
        "started": pack_numbers([s.started_after for s in settlements]),
        "results": pack_texts([s.result for s in settlements]),
        "queues": list({s.queue for s in settlements}),
        "keep": DEFAULT_RETENTION[Status.COMPLETED],
        "tombstone": TOMBSTONE_RETENTION,
    }
    return {row[0] for row in await db.rows("complete", values)}


async def _settle_others(db: Db, settlements: Sequence[Settlement]) -> list[Settled]:
    ids, attempts = [s.id for s in settlements], [s.attempt for s in settlements]
    rows = await db.rows("running", {"ids": ids, "attempts": attempts})
    running = {(row[0], row[3]): Running(*row) for row in rows}
    endings, answers = [], []
    for settlement in settlements:
        # Removed, so that a settlement that comes twice in one call counts as a repeat.
        job = running.pop((settlement.id, settlement.attempt), None)
        answers.append(None if job is None else Settled.SETTLED)
        if job is not None:
            endings.append((job, settlement))
    await end(db, endings)
    unsettled = [s for s, answer in zip(settlements, answers, strict=True) if answer is None]
    repeats = await _repeats(db, unsettled)
    return [
        answer or (Settled.ALREADY if (s.id, s.attempt, s.outcome) in repeats else Settled.STALE)
        for s, answer in zip(settlements, answers, strict=True)
    ]


async def _repeats(db: Db, settlements: Sequence[Settlement]) -> set[tuple[JobId, int, str]]:
    """Those of the settlements whose outcome is recorded already; the others are stale."""
    if not settlements:
        return set()
    values = {"ids": [s.id for s in settlements]}
    recorded = {row[0]: row[1:] for row in await db.rows("recorded", values)}
    dropped = {tuple(row) for row in await db.rows("tombstone_outcomes", values)}
    repeats = {(s.id, s.attempt, s.outcome) for s in settlements if (s.id, s.attempt, s.outcome) in dropped}
    return repeats | {
        (s.id, s.attempt, s.outcome) for s in settlements if s.id in recorded and is_repeat(s, *recorded[s.id])
    }


async def note(db: Db, notes: Sequence[Note]) -> None:
    """Store the notes of running attempts; a late note changes nothing.

    The jobs are locked first, so that none can end, and its notes be dropped, before the notes are written.
    """
    noted = dict.fromkeys((each.id, each.attempt) for each in notes)
    fences = {"ids": [id_ for id_, _ in noted], "attempts": [attempt for _, attempt in noted]}
    running = {(row["id"], row["attempt"]) for row in await db.rows("running", fences)}
    current = [each for each in notes if (each.id, each.attempt) in running]
    await _note_starts(db, [each for each in current if each.started_after is not None])
    await _keep(db, [each for each in current if each.progress or each.lines])


async def _note_starts(db: Db, started: Sequence[Note]) -> None:
    if started:
        first = {each.id: each.started_after for each in reversed(started)}
        await db.run("note_starts", {"ids": list(first), "afters": list(first.values())})


async def _keep(db: Db, notes: Sequence[Note]) -> None:
    if not notes:
        return
    ids = list({each.id: None for each in notes})
    kept = {row[0]: (row[1], row[2]) for row in await db.rows("notes", {"jobs": ids})}
    for each in notes:
        kept[each.id] = add_note(*kept.get(each.id, (None, None)), each)
    progress, logs = [kept[id_][0] for id_ in ids], [kept[id_][1] for id_ in ids]
    await db.run("set_notes", {"jobs": ids, "progress": progress, "logs": logs})


async def end(db: Db, endings: Sequence[tuple[Running, Ending]]) -> list[Status]:
    """Move running jobs into history, or make them wait again; returns the new status of each.

    The caller has locked the jobs in this transaction.
    """
    if not endings:
        return []
    now = await db.now()
    resolved = [(job, resolve(job, ending, now)) for job, ending in endings]
    values = [{**ending_values(job, ending, now), "ending": ending, "job": job} for job, ending in resolved]
    await _finish(db, [each for each in values if each["ending"].status in FINISHED])
    await _put_back(db, [each for each in values if each["ending"].status is Status.PENDING])
    await _reschedule(db, [each for each in values if each["ending"].status in (Status.FAILED, Status.SCHEDULED)])
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
    """Make requeued and rescued jobs pending; they keep their rank."""
    if values:
        columns = _columns(values, "crashes", "rescues", "suspicions", "requeues", "attempts")
        await watermarks.lower(db, [tuple(row) for row in await db.rows("requeue", columns)])


async def _reschedule(db: Db, values: list[dict[str, Any]]) -> None:
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
