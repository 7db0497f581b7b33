"""Dependents: a parent that ends releases or cancels them in its own transaction.

A dependency can change until both jobs are locked. So these functions lock and read again until a read finds no
further job. Locks are taken in order: parents before dependents, lower ids first.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from windlass.core.flow.queue import DEFAULT_RETENTION
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import ParentEffect, effect_of, parent_ended_reason
from windlass.core.status import Status
from windlass.store.keys import Keyed
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits.idempotency_keys import release, take
from windlass.store.postgres.verbs.prune import drop


async def cancel_all(db: Db, reasons: Mapping[JobId, str]) -> None:
    """Move waiting jobs into history, each with its reason, and free their keys.

    The caller has locked the jobs in this transaction, read that they are waiting, and handles their dependents.
    """
    if not reasons:
        return
    values = {"ids": list(reasons), "reasons": list(reasons.values()), "keep": DEFAULT_RETENTION[Status.CANCELLED]}
    rows = await db.rows("cancel", values)
    await db.rows("notify_result_waits", {"ids": list(reasons)})
    await release(db, [Keyed(*row[:4]) for row in rows])
    await drop(db, [row[0] for row in rows if row[4]])


_statuses = msgspec.json.Decoder(dict[JobId, Status])


async def after_parents_ended(db: Db, ended: Mapping[JobId, Status]) -> int:
    """Release or cancel the dependents of jobs that have ended and are locked; returns how many may run now."""
    releasing = [id_ for id_, status in ended.items() if effect_of(status) is ParentEffect.RELEASE]
    cancelling = {id_: status for id_, status in ended.items() if effect_of(status) is ParentEffect.CANCEL}
    ready: int = (await db.rows("release_dependents", {"ids": releasing}))[0][0] if releasing else 0
    return ready + await _cancel_below(db, cancelling, {})


async def cancel_with_dependents(db: Db, reasons: Mapping[JobId, str]) -> None:
    """Cancel waiting jobs, each with its reason, and their dependents.

    The caller has locked the jobs, and read that they are waiting.
    """
    await _cancel_below(db, dict.fromkeys(reasons, Status.CANCELLED), reasons)


async def _cancel_below(db: Db, ended: Mapping[JobId, Status], reasons: Mapping[JobId, str]) -> int:
    """Cancel the jobs of `reasons`, and all dependents of `ended` except those that wait for an end only, which are
    released. Returns how many jobs may run now.
    """
    if not ended:
        return 0
    dependents, any_released = await _lock_dependents(db, ended)
    await cancel_all(db, {**dependents, **reasons})
    if not any_released:
        return 0
    ready: int = (await db.rows("release_ended_dependents", {"ids": [*ended, *dependents]}))[0][0]
    return ready


async def _lock_dependents(db: Db, ended: Mapping[JobId, Status]) -> tuple[dict[JobId, str], bool]:
    """Lock all dependents, direct or not; returns why each is cancelled, and whether any waits for an end only."""
    cancelled: dict[JobId, str] = {}
    while True:
        rows = await db.rows("descendants", {"ids": [*ended, *cancelled]})
        found = {child: parent for child, parent, when_ended in rows if not when_ended}
        new = {child: parent for child, parent in found.items() if child not in cancelled and child not in ended}
        if not new:
            return cancelled, any(when_ended for _, _, when_ended in rows)
        live = {row[0] for row in await db.rows("lock_live", {"ids": sorted(new)})}
        cancelled |= {
            child: parent_ended_reason(parent, ended.get(parent, Status.CANCELLED))
            for child, parent in new.items()
            if child in live
        }


class CancelledDependent(NamedTuple):
    """A row of the statement `cancelled_because_of`."""

    id: JobId
    queue: str
    key: str | None
    failed: dict[JobId, Status]
    """The parents that ended without completing, and how."""


async def revive_dependents(db: Db, parents: Sequence[JobId]) -> None:
    """The parents run again: jobs cancelled because of them wait for them again, and so do their dependents.

    A job stays cancelled, with its dependents, if its idempotency key has another holder, or if another parent has
    failed: from now on that is the reason.
    """
    cancelled = await _cancelled_because_of(db, parents)
    revived: set[JobId] = set()
    before = -1
    # Repeated for jobs whose parents come after them in the list.
    while cancelled and len(revived) > before:
        before = len(revived)
        for each in cancelled:
            can_wait = each.failed.keys() <= revived
            if can_wait and (each.key is None or await take(db, each.queue, each.key, each.id) is None):
                revived.add(each.id)
        cancelled = [each for each in cancelled if each.id not in revived]
    await revive_waiting(db, sorted(revived))
    still_failed = {
        each.id: {id_: status for id_, status in each.failed.items() if id_ not in revived} for each in cancelled
    }
    reasons = {
        child: parent_ended_reason(*sorted(failed.items())[0]) for child, failed in still_failed.items() if failed
    }
    if reasons:
        await db.run("set_cancel_reasons", {"ids": list(reasons), "reasons": list(reasons.values())})


async def _cancelled_because_of(db: Db, parents: Sequence[JobId]) -> list[CancelledDependent]:
    """Lock and return the jobs that were cancelled because of these; their other parents are locked too."""
    held: set[JobId] = set()
    while True:
        rows = [
            CancelledDependent(id_, queue, key, _statuses.decode(failed))
            for id_, queue, key, failed in await db.rows("cancelled_because_of", {"ids": list(parents)})
        ]
        new = {each.id for each in rows} - held
        if not new:
            return rows
        await db.rows("lock_pending_parents", {"ids": sorted(new)})
        await db.rows(
            "share_lock_finished", {"ids": sorted({id_ for each in rows for id_ in each.failed} - new - held)}
        )
        await db.rows("lock_finished", {"ids": sorted(new)})
        held |= new


async def revive_waiting(db: Db, ids: Sequence[JobId]) -> None:
    """Make cancelled jobs, which the caller has locked, wait for their parents again."""
    if ids:
        await db.run("revive_waiting", {"ids": list(ids)})
