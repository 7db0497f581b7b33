"""settle: record how attempts ended, fenced by (job, attempt)."""

from collections import defaultdict
from collections.abc import Sequence

from windlass.core.outcome import Settlement
from windlass.core.status import Status
from windlass.store.ending import Running, is_repeat, settled
from windlass.store.records import Settled
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.ending import end, retention
from windlass.store.sqlite.heirs import follow
from windlass.store.sqlite.line import move_up
from windlass.store.sqlite.prune import drop


def settle(db: Db, settlements: Sequence[Settlement]) -> list[Settled]:
    """Completions go as one set per queue; if anything in them is unusual, all are looked at one by one."""
    plain: dict[str, list[Settlement]] = defaultdict(list)
    for settlement in settlements:
        if settlement.status is Status.COMPLETED and not settlement.keyed:
            plain[settlement.queue].append(settlement)
    if plain and _complete(db, plain):
        return [
            Settled.SETTLED if s.status is Status.COMPLETED and not s.keyed else _settle_one(db, s)
            for s in settlements
        ]
    return [_settle_one(db, settlement) for settlement in settlements]


def _complete(db: Db, by_queue: dict[str, list[Settlement]]) -> bool:
    """Move all of them into history, or none: False if any is not running as it says."""
    db.savepoint("plain")
    for queue, settlements in by_queue.items():
        if not _complete_queue(db, queue, settlements):
            db.roll_back("plain")
            return False
    db.release("plain")
    return True


def _complete_queue(db: Db, queue: str, settlements: Sequence[Settlement]) -> bool:
    """One statement in, one out; those in line for a key go on, and those who wait for one of these."""
    ids = {s.id for s in settlements}
    if len(ids) != len(settlements):
        return False
    values = {
        "batch": array((s.id, s.attempt, s.started_after, s.result) for s in settlements),
        "now": db.now,
        "keep": retention(db, queue, Status.COMPLETED),
    }
    if db.run("complete", values) != len(settlements):
        return False
    db.run("drop_completed", values)
    db.tally(queue, Status.COMPLETED, len(settlements))
    move_up(db, {(queue, s.concurrency_key) for s in settlements if s.concurrency_key is not None})
    follow(db, dict.fromkeys(ids, Status.COMPLETED))
    if values["keep"] == 0:
        # Gone at once, but for the tombstone.
        drop(db, list(ids))
    return True


def _settle_one(db: Db, settlement: Settlement) -> Settled:
    rows = db.rows("running", {"id": settlement.id, "attempt": settlement.attempt})
    if not rows:
        return _already(db, settlement)
    end(db, Running(*rows[0]), settled(settlement))
    return Settled.SETTLED


def _already(db: Db, settlement: Settlement) -> Settled:
    """A repeat finds its own outcome recorded; anything else is stale."""
    if any(is_repeat(settlement, *row) for row in db.rows("recorded", {"id": settlement.id})):
        return Settled.ALREADY
    values = {"id": settlement.id, "attempt": settlement.attempt, "outcome": settlement.outcome}
    if db.rows("buried", values):
        return Settled.ALREADY
    return Settled.STALE
