"""How waiting jobs end without a run: called off by a person, replaced by a newcomer, or expired."""

from collections.abc import Mapping

from windlass.core.ids import JobId
from windlass.core.queue import DEFAULT_RETENTION
from windlass.core.status import Status
from windlass.store.keys import Keyed
from windlass.store.postgres.db import Db
from windlass.store.postgres.keys import release
from windlass.store.postgres.prune import drop


async def cancel_all(db: Db, reasons: Mapping[JobId, str]) -> None:
    """Move waiting jobs into history, each with its reason; their keys are released.

    The caller has locked them in this transaction, seen that they wait, and thought of those who wait for them.
    """
    if not reasons:
        return
    values = {"ids": list(reasons), "reasons": list(reasons.values()), "keep": DEFAULT_RETENTION[Status.CANCELLED]}
    rows = await db.rows("cancel", values)
    await db.rows("tell_awaited", {"ids": list(reasons)})
    await release(db, [Keyed(*row[:4]) for row in rows])
    await drop(db, [row[0] for row in rows if row[4]])
