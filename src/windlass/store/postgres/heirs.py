"""Heirs: jobs that wait for others. A parent that ends lets them go on, or takes them with it, in its transaction.

Who waits for whom can change until both are locked: so whoever calls off or calls back looks again after locking,
until there is nobody new. The order of locks is: parents, then those who wait for them; the lower ids first.
"""

from collections.abc import Mapping, Sequence

from windlass.core.chain import Turn, called_off_by, turn_of
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.postgres.cancel import cancel_all
from windlass.store.postgres.db import Db
from windlass.store.postgres.keys import take


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


async def bring_back(db: Db, parents: Sequence[JobId]) -> None:
    """The parents run again: who was called off because of one waits for it once more, and so on down.

    One whose idempotency key has another holder by now stays where it is, with those behind it.
    """
    left: set[JobId] = set()
    back: set[JobId] = set()
    while True:
        rows = await db.rows("called_off_by", {"ids": [*parents, *back]})
        new = [tuple(row) for row in rows if row[0] not in back and row[0] not in left]
        if not new:
            return
        held = {row[0] for row in await db.rows("lock_finished", {"ids": sorted({row[0] for row in new})})}
        coming: list[JobId] = []
        for child, because, queue, key in new:
            if child in coming:
                continue
            taken = child not in held or because in left
            if taken or (key is not None and await take(db, queue, key, child) is not None):
                left.add(child)
            else:
                coming.append(child)
        await wait_again(db, coming)
        back |= set(coming)


async def wait_again(db: Db, ids: Sequence[JobId]) -> None:
    """Cancelled jobs, which the caller has locked, go back to wait for their parents."""
    if ids:
        await db.run("revive_waiting", {"ids": list(ids)})
