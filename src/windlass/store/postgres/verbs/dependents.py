"""Dependents: a parent that ends releases or cancels them in its own transaction.

Dependencies can change until both jobs are locked: so these functions read again after locking, until there is
nothing new. Locks are taken in order: parents before dependents, lower ids first.
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
    """Move waiting jobs into history, each with its reason; their keys are released.

    The caller has locked them in this transaction, seen that they wait, and handles their dependents itself.
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
    """Release or cancel the dependents of these ended, locked jobs; returns how many may run now."""
    going = [id_ for id_, status in ended.items() if effect_of(status) is ParentEffect.RELEASE]
    falling = {id_: status for id_, status in ended.items() if effect_of(status) is ParentEffect.CANCEL}
    ready: int = (await db.rows("release_dependents", {"ids": going}))[0][0] if going else 0
    return ready + await _cancel_below(db, falling, {})


async def cancel_with_dependents(db: Db, reasons: Mapping[JobId, str]) -> None:
    """Cancel waiting jobs and their dependents, each with its reason.

    The caller has locked the jobs, and seen that they wait.
    """
    await _cancel_below(db, dict.fromkeys(reasons, Status.CANCELLED), reasons)


async def _cancel_below(db: Db, ended: Mapping[JobId, Status], reasons: Mapping[JobId, str]) -> int:
    """Cancel these waiting jobs and those that wait for an ended job to complete; release those that wait for its end
    only. Returns how many may run now.
    """
    if not ended:
        return 0
    down, any_released = await _lock_dependents(db, ended)
    await cancel_all(db, {**down, **reasons})
    if not any_released:
        return 0
    ready: int = (await db.rows("release_ended_dependents", {"ids": [*ended, *down]}))[0][0]
    return ready


async def _lock_dependents(db: Db, ended: Mapping[JobId, Status]) -> tuple[dict[JobId, str], bool]:
    """All dependents, direct or not, locked, and why each is cancelled; and whether any wait for an end alone."""
    cancelled: dict[JobId, str] = {}
    while True:
        rows = await db.rows("descendants", {"ids": [*ended, *cancelled]})
        falling = {child: parent for child, parent, when_ended in rows if not when_ended}
        new = {child: parent for child, parent in falling.items() if child not in cancelled and child not in ended}
        if not new:
            return cancelled, any(when_ended for _, _, when_ended in rows)
        living = {row[0] for row in await db.rows("lock_live", {"ids": sorted(new)})}
        cancelled |= {
            child: parent_ended_reason(parent, ended.get(parent, Status.CANCELLED))
            for child, parent in new.items()
            if child in living
        }


class CancelledDependent(NamedTuple):
    """A row of the statement `cancelled_because_of`."""

    id: JobId
    queue: str
    key: str | None
    failed: dict[JobId, Status]
    """How those of its parents ended that did not complete."""


async def revive_dependents(db: Db, parents: Sequence[JobId]) -> None:
    """The parents run again: jobs cancelled because of them wait for them once more, and so on down.

    A job stays cancelled, with its dependents, if its idempotency key has another holder, or if another parent has
    failed: from now on that is the reason.
    """
    left = await _cancelled_because_of(db, parents)
    back: set[JobId] = set()
    before = -1
    # Again for those whose parents came later.
    while left and len(back) > before:
        before = len(back)
        for each in left:
            waits = each.failed.keys() <= back
            if waits and (each.key is None or await take(db, each.queue, each.key, each.id) is None):
                back.add(each.id)
        left = [each for each in left if each.id not in back]
    await revive_waiting(db, sorted(back))
    others = {each.id: {id_: how for id_, how in each.failed.items() if id_ not in back} for each in left}
    reasons = {child: parent_ended_reason(*sorted(failed.items())[0]) for child, failed in others.items() if failed}
    if reasons:
        await db.run("set_cancel_reasons", {"ids": list(reasons), "reasons": list(reasons.values())})


async def _cancelled_because_of(db: Db, parents: Sequence[JobId]) -> list[CancelledDependent]:
    """Jobs cancelled because of these, locked, with their other parents locked too."""
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
    """Cancelled jobs, locked by the caller, wait for their parents again."""
    if ids:
        await db.run("revive_waiting", {"ids": list(ids)})
