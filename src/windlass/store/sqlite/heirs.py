"""Heirs: jobs that wait for others. A parent that ends lets them go on, or takes them with it, in its transaction."""

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


def bring_back(db: Db, parent: JobId) -> None:
    """The parent runs again: who was called off because of it waits for it once more, and so on down.

    One whose idempotency key has another holder by now stays where it is, with those behind it.
    """
    left: set[JobId] = set()
    back: dict[JobId, str] = {}
    for child, because, queue, key in db.rows("called_off_by", {"id": parent}):
        if because in left or (key is not None and child not in back and take(db, queue, key, child) is not None):
            left.add(child)
        else:
            back[child] = queue
    wait_again(db, back)


def wait_again(db: Db, queues: Mapping[JobId, str]) -> None:
    """Cancelled jobs, with their queues, go back to wait for their parents."""
    if not queues:
        return
    values = {"ids": array(queues), "now": db.now}
    db.run("revive_waiting", values)
    db.run("drop_history", values)
    for queue in queues.values():
        db.tally(queue, Status.CANCELLED, -1)
