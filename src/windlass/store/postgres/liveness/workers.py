"""Workers: alive if their heartbeat is recent, by the server's clock."""

import msgspec

from windlass.store.postgres.connection.db import Db
from windlass.store.records import WorkerInfo
from windlass.store.rows import SILENT_AFTER, to_worker


async def beat(db: Db, worker: WorkerInfo) -> None:
    """Register or refresh."""
    await db.run("beat", {"id": worker.id, "info": msgspec.json.encode(worker).decode()})


async def unregister(db: Db, worker: str) -> None:
    await db.run("unregister_worker", {"id": worker})


async def live_workers(db: Db) -> list[WorkerInfo]:
    """Live workers, with the number of jobs that they hold."""
    return [to_worker(*row) for row in await db.rows("workers", {"silent": SILENT_AFTER})]


async def forget_dead(db: Db) -> None:
    """Delete workers that ended without unregistering."""
    await db.run("drop_silent_workers", {"silent": SILENT_AFTER})
