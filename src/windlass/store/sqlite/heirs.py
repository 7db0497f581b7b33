"""Heirs: jobs that wait for others. A parent that ends lets them go on, or takes them with it, in its transaction."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windlass.core.chain import Turn, called_off_by, turn_of
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.sqlite.cancel import call_off
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.keys import take
from windlass.store.sqlite.line import move_up


class Heir(NamedTuple):
    """A row of heirs.sql: who waits for which parent."""

    parent: JobId
    child: JobId
    queue: str | None
    """None: it has ended meanwhile."""
    key: str | None
    result: str | None
    """Of the parent, as JSON of [parent, result], if it is taken."""


def follow(db: Db, ended: Mapping[JobId, Status]) -> None:
    """These have ended and are in history: what that means for those who wait for them. Mostly nobody does."""
    rows = db.rows("heirs", {"parents": array(ended)})
    if not rows:
        return
    heirs = [Heir(*row) for row in rows]
    _pass_on(db, [each for each in heirs if turn_of(ended[each.parent]) is Turn.GO_ON])
    fallen = [each for each in heirs if each.queue and turn_of(ended[each.parent]) is Turn.CALL_OFF]
    call_off(db, {each.child: called_off_by(each.parent, ended[each.parent]) for each in fallen})


def _pass_on(db: Db, heirs: Sequence[Heir]) -> None:
    if not heirs:
        return
    results: dict[JobId, list[str | None]] = defaultdict(list)
    for each in heirs:
        results[each.child].append(each.result)
    gifts = [(child, len(all_), ",".join(filter(None, all_)) or None) for child, all_ in results.items()]
    values = {"gifts": array(gifts), "now": db.now}
    db.run("pass_on", values)
    if not all(each.queue for each in heirs):
        db.run("pass_on_ended", values)
    db.run("drop_edges", {"parents": array({each.parent for each in heirs})})
    move_up(db, {(each.queue, each.key) for each in heirs if each.queue and each.key})


class CalledOff(NamedTuple):
    """A row of called_off_by.sql."""

    id: JobId
    queue: str
    key: str | None
    vain: str
    """JSON of parent → how it ended, of those that have not completed and are not live."""


def bring_back(db: Db, parent: JobId) -> None:
    """The parent runs again: who was called off because of it waits for it once more, and so on down.

    One whose idempotency key has another holder by now stays where it is, with those behind it; and one that would
    wait for another parent in vain: from now on that is why.
    """
    left = [CalledOff(*row) for row in db.rows("called_off_by", {"id": parent})]
    back: dict[JobId, str] = {}
    before = -1
    # Again for those whose parents came after them.
    while left and len(back) > before:
        before = len(back)
        for each in left:
            waits = _vain(each).keys() <= back.keys()
            if waits and (each.key is None or take(db, each.queue, each.key, each.id) is None):
                back[each.id] = each.queue
        left = [each for each in left if each.id not in back]
    wait_again(db, back)
    others = {each.id: {id_: how for id_, how in _vain(each).items() if id_ not in back} for each in left}
    reasons = [(child, called_off_by(*sorted(vain.items())[0])) for child, vain in others.items() if vain]
    if reasons:
        db.run("rename_culprits", {"reasons": array(reasons)})


def _vain(job: CalledOff) -> dict[JobId, Status]:
    return {parent: Status(status) for parent, status in json.loads(job.vain).items()}


def wait_again(db: Db, queues: Mapping[JobId, str]) -> None:
    """Cancelled jobs, with their queues, go back to wait for their parents."""
    if not queues:
        return
    values = {"ids": array(queues), "now": db.now}
    db.run("revive_waiting", values)
    db.run("drop_history", values)
    for queue in queues.values():
        db.tally(queue, Status.CANCELLED, -1)
