"""The registry of workers: alive is who was heard of lately, by the server's clock."""

import msgspec

from windlass.store.postgres.db import Db
from windlass.store.records import WorkerInfo
from windlass.store.workers import SILENT_AFTER, to_worker


async def beat(db: Db, worker: WorkerInfo) -> None:
    """Register or refresh."""
    await db.run("beat", {"id": worker.id, "info": msgspec.json.encode(worker).decode()})


async def forget(db: Db, worker: str) -> None:
    """Sign off."""
    await db.run("forget", {"id": worker})


async def live_workers(db: Db) -> list[WorkerInfo]:
    """Those that are alive, with the number of jobs that they hold now."""
    return [to_worker(*row) for row in await db.rows("workers", {"silent": SILENT_AFTER})]


async def forget_dead(db: Db) -> None:
    """Clear away those that ended without signing off."""
    await db.run("forget_dead", {"silent": SILENT_AFTER})
