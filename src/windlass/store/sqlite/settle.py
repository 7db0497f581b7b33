"""settle: record how attempts ended, fenced by (job, attempt)."""

from collections import Counter
from collections.abc import Sequence

from windlass.core.outcome import Settlement
from windlass.core.queue import DEFAULT_RETENTION
from windlass.core.status import Status
from windlass.store.records import Settled
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.ending import Running, attempts_of, end, settled
from windlass.store.sqlite.prune import drop


def settle(db: Db, settlements: Sequence[Settlement]) -> list[Settled]:
    """Completions go as one set; whatever is unusual in them is told apart one by one."""
    answers: dict[int, Settled] = {}
    plain = [i for i, s in enumerate(settlements) if s.status is Status.COMPLETED and not s.keyed]
    if plain and _complete(db, [settlements[i] for i in plain]):
        answers = dict.fromkeys(plain, Settled.SETTLED)
    return [answers.get(i) or _settle_one(db, settlement) for i, settlement in enumerate(settlements)]


def _complete(db: Db, settlements: Sequence[Settlement]) -> bool:
    """Move all of them into history by one statement, or none: False if any is not running as it says."""
    batch = array((s.id, s.attempt, s.started_after, s.result) for s in settlements)
    running = db.rows("count_running", {"batch": batch})[0][0]
    if running != len(settlements) or len({s.id for s in settlements}) != len(settlements):
        return False
    values = {"batch": batch, "now": db.now, "keep": DEFAULT_RETENTION[Status.COMPLETED]}
    db.run("complete", values)
    db.run("drop_completed", values)
    for queue, jobs in Counter(s.queue for s in settlements).items():
        db.tally(queue, Status.COMPLETED, jobs)
    _drop_unkept(db, settlements)
    return True


def _drop_unkept(db: Db, settlements: Sequence[Settlement]) -> None:
    """A queue with retention=0 keeps nothing: gone at once, but for the tombstone."""
    unkept = {row[0] for row in db.rows("unkept")}
    ids = [s.id for s in settlements if s.queue in unkept]
    if ids:
        drop(db, [row[0] for row in db.rows("droppable", {"ids": array(ids), "now": db.now})])


def _settle_one(db: Db, settlement: Settlement) -> Settled:
    rows = db.rows("running", {"id": settlement.id, "attempt": settlement.attempt})
    if not rows:
        return _already(db, settlement)
    end(db, Running(*rows[0]), settled(settlement))
    return Settled.SETTLED


def _already(db: Db, settlement: Settlement) -> Settled:
    """A repeat finds its own outcome recorded; anything else is stale."""
    for row in db.rows("recorded", {"id": settlement.id}):
        attempt, status, kept = row
        if attempt == settlement.attempt and status == settlement.status == Status.COMPLETED:
            return Settled.ALREADY
        mine = (settlement.attempt, settlement.outcome)
        if any((entry.attempt, entry.outcome) == mine for entry in attempts_of(kept)):
            return Settled.ALREADY
    values = {"id": settlement.id, "attempt": settlement.attempt, "outcome": settlement.outcome}
    if db.rows("buried", values):
        return Settled.ALREADY
    return Settled.STALE
