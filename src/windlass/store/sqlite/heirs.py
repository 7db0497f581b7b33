"""Heirs: jobs that wait for others. A parent that ends lets them go on, or takes them with it, in its transaction."""

from collections.abc import Collection, Mapping

from windlass.core.chain import Turn, called_off_by, turn_of
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.sqlite.cancel import call_off
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.keys import take
from windlass.store.sqlite.line import move_up


def follow(db: Db, ended: Mapping[JobId, Status]) -> None:
    """These have ended and are in history: what that means for those who wait for them. Mostly nobody does."""
    values = {"parents": array(ended), "now": db.now}
    rows = db.rows("heirs", values)
    if not rows:
        return
    going = [row for row in rows if turn_of(ended[row[0]]) is Turn.GO_ON]
    if going:
        _pass_on(db, going)
    call_off(
        db,
        {
            child: called_off_by(parent, ended[parent])
            for parent, child, queue, _ in rows
            if queue is not None and turn_of(ended[parent]) is Turn.CALL_OFF
        },
    )


def _pass_on(db: Db, rows: Collection[tuple[JobId, JobId, str | None, str | None]]) -> None:
    values = {"parents": array({parent for parent, _, _, _ in rows}), "now": db.now}
    db.run("pass_on", values)
    if any(queue is None for _, _, queue, _ in rows):
        db.run("pass_on_ended", values)
    db.run("drop_edges", values)
    move_up(db, {(queue, key) for _, _, queue, key in rows if queue is not None and key is not None})


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
