"""How waiting jobs end without a run: called off by a person, replaced by a newcomer, or expired."""

from collections import Counter
from collections.abc import Mapping

from windlass.core.chain import called_off_by
from windlass.core.ids import JobId
from windlass.core.queue import DEFAULT_RETENTION
from windlass.core.status import Status
from windlass.store.keys import Keyed
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.keys import release
from windlass.store.sqlite.line import move_up
from windlass.store.sqlite.prune import drop_unkept


def call_off(db: Db, reasons: Mapping[JobId, str]) -> None:
    """Move waiting jobs into history, each with its reason; their keys are released, and who stands in line goes on.

    The caller has seen, in this transaction, that they wait. Who waits for one of them goes with it.
    """
    if not reasons:
        return
    down = db.rows("descendants", {"ids": array(reasons)})
    reasons = {**{child: called_off_by(parent, Status.CANCELLED) for child, parent in down}, **reasons}
    values = {"batch": array(reasons.items()), "now": db.now, "keep": DEFAULT_RETENTION[Status.CANCELLED]}
    rows = db.rows("cancellable", values)
    jobs = [Keyed(*row[:4]) for row in rows]
    db.run("cancel", values)
    db.run("drop_called_off", values)
    for queue, count in Counter(job.queue for job in jobs).items():
        db.tally(queue, Status.CANCELLED, count)
    release(db, jobs)
    drop_unkept(db, [job.id for job in jobs])
    move_up(db, {(queue, key) for _, queue, _, _, key in rows if key is not None})
