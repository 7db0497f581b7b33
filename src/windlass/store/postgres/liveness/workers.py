"""The registry of workers, which are alive if their heartbeat is recent, and the leadership of the coordinator."""

from collections.abc import Sequence

import msgspec

from windlass.store.postgres.connection.db import Db
from windlass.store.records import Campaign, WorkerInfo
from windlass.store.rows import SILENT_AFTER, to_worker


async def beat(db: Db, workers: Sequence[WorkerInfo]) -> None:
    """Register workers or refresh their entries, in order: two processes may report the same ones."""
    ordered = sorted(workers, key=lambda worker: worker.id)
    infos = [msgspec.json.encode(worker).decode() for worker in ordered]
    await db.run("beat", {"ids": [worker.id for worker in ordered], "infos": infos})


async def unregister(db: Db, worker: str) -> None:
    await db.run("unregister_worker", {"id": worker})


async def live_workers(db: Db) -> list[WorkerInfo]:
    """Live workers, with the number of jobs that they hold."""
    return [to_worker(*row) for row in await db.rows("workers", {"silent": SILENT_AFTER})]


async def forget_dead(db: Db) -> None:
    """Delete workers that ended without unregistering."""
    await db.run("drop_silent_workers", {"silent": SILENT_AFTER})


async def is_taken(db: Db, bid: Campaign) -> bool:
    """Whether another process is the leader; takes no lock."""
    return await current_leader(db) not in (None, bid.candidate)


async def campaign(db: Db, bid: Campaign) -> int | None:
    """Acquire leadership if it is free, or renew it; returns the term. The leader deletes dead workers."""
    rows = await db.rows("acquire_leadership", {"holder": bid.candidate, "length": bid.length})
    if not rows:
        return None
    await forget_dead(db)
    return int(rows[0][0])


async def current_leader(db: Db) -> str | None:
    """The current leader, unless its term has expired."""
    rows = await db.rows("leader")
    return str(rows[0][0]) if rows else None


async def resign(db: Db, candidate: str) -> None:
    """Give up leadership, if this process has it."""
    await db.run("resign", {"holder": candidate})
