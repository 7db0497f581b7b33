"""Heirs: jobs that wait for others. A parent that ends lets them go on, or takes them with it, in its transaction.

Who waits for whom can change until both are locked: so whoever calls off or calls back looks again after locking,
until there is nobody new. The order of locks is: parents, then those who wait for them; the lower ids first.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from windlass.core.chain import Turn, called_off_by, turn_of
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.postgres.cancel import cancel_all
from windlass.store.postgres.db import Db
from windlass.store.postgres.keys import take

_statuses = msgspec.json.Decoder(dict[JobId, Status])


async def follow(db: Db, ended: Mapping[JobId, Status]) -> int:
    """These have ended, are in history and in our hands: what that means for those who wait for them.

    How many may run now.
    """
    going = [id_ for id_, status in ended.items() if turn_of(status) is Turn.GO_ON]
    falling = {id_: status for id_, status in ended.items() if turn_of(status) is Turn.CALL_OFF}
    ready: int = (await db.rows("pass_on", {"ids": going}))[0][0] if going else 0
    if falling:
        await cancel_all(db, await _fall(db, falling))
    return ready


async def call_off(db: Db, reasons: Mapping[JobId, str]) -> None:
    """Move waiting jobs into history, each with its reason; their keys are released. Who waits for one goes with it.

    The caller has locked them in this transaction, and seen that they wait.
    """
    if reasons:
        down = await _fall(db, dict.fromkeys(reasons, Status.CANCELLED))
        await cancel_all(db, {**down, **reasons})


async def _fall(db: Db, ended: Mapping[JobId, Status]) -> dict[JobId, str]:
    """All who wait for these, directly or not, locked; and why each of them is called off."""
    fallen: dict[JobId, str] = {}
    while True:
        rows = await db.rows("descendants", {"ids": [*ended, *fallen]})
        new = {child: parent for child, parent in rows if child not in fallen and child not in ended}
        if not new:
            return fallen
        living = {row[0] for row in await db.rows("lock_live", {"ids": sorted(new)})}
        fallen |= {
            child: called_off_by(parent, ended.get(parent, Status.CANCELLED))
            for child, parent in new.items()
            if child in living
        }


class CalledOff(NamedTuple):
    """A row of called_off_by.sql."""

    id: JobId
    queue: str
    key: str | None
    vain: dict[JobId, Status]
    """How those of its parents ended that have not completed and are not live."""


async def bring_back(db: Db, parents: Sequence[JobId]) -> None:
    """The parents run again: who was called off because of one waits for it once more, and so on down.

    One whose idempotency key has another holder by now stays where it is, with those behind it; and one that would
    wait for another parent in vain: from now on that is why.
    """
    left = await _called_off_by(db, parents)
    back: set[JobId] = set()
    before = -1
    # Again for those whose parents came after them.
    while left and len(back) > before:
        before = len(back)
        for each in left:
            waits = each.vain.keys() <= back
            if waits and (each.key is None or await take(db, each.queue, each.key, each.id) is None):
                back.add(each.id)
        left = [each for each in left if each.id not in back]
    await wait_again(db, sorted(back))
    others = {each.id: {id_: how for id_, how in each.vain.items() if id_ not in back} for each in left}
    reasons = {child: called_off_by(*sorted(vain.items())[0]) for child, vain in others.items() if vain}
    if reasons:
        await db.run("rename_culprits", {"ids": list(reasons), "reasons": list(reasons.values())})


async def _called_off_by(db: Db, parents: Sequence[JobId]) -> list[CalledOff]:
    """Who fell with these; locked, and nobody ends or revives one of their other parents now."""
    held: set[JobId] = set()
    while True:
        rows = [
            CalledOff(id_, queue, key, _statuses.decode(vain))
            for id_, queue, key, vain in await db.rows("called_off_by", {"ids": list(parents)})
        ]
        new = {each.id for each in rows} - held
        if not new:
            return rows
        await db.rows("lock_awaited", {"ids": sorted(new)})
        await db.rows("hold_finished", {"ids": sorted({id_ for each in rows for id_ in each.vain} - new - held)})
        await db.rows("lock_finished", {"ids": sorted(new)})
        held |= new


async def wait_again(db: Db, ids: Sequence[JobId]) -> None:
    """Cancelled jobs, which the caller has locked, go back to wait for their parents."""
    if ids:
        await db.run("revive_waiting", {"ids": list(ids)})
