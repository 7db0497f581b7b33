"""Queues: what the code declares, what an operator changed, and whether they are paused.

A queue's row is locked before it is read for a change: two who change it at once change it one after the other.
"""

from collections.abc import Callable, Collection
from typing import Any

import msgspec

from windlass.core.moments import Micros, to_datetime
from windlass.core.queue import Queue, QueueSettings
from windlass.store.postgres.db import Db
from windlass.store.queues import queue_values, to_queue, with_change


async def declare(db: Db, queues: dict[str, QueueSettings]) -> None:
    """What the code says; the operator's change beside it stays."""
    await _rewrite(db, queues, lambda each: msgspec.structs.replace(each, declared=queues[each.name]))


async def undeclared(db: Db, queues: dict[str, QueueSettings]) -> bool:
    """A look without a lock: whether anything would change."""
    found = {row[0]: _queue_of(row) for row in await db.rows("queues_named", {"names": list(queues)})}
    return any(name not in found or found[name].declared != declared for name, declared in queues.items())


async def make_if_new(db: Db, names: Collection[str]) -> None:
    """Queues that may not have been used yet, with the default settings."""
    values = queue_values(Queue(name=""))
    await db.run("make_queues", {**values, "names": sorted(set(names))})


async def change(db: Db, name: str, changed: QueueSettings, was: QueueSettings | None) -> Queue:
    """Replace the operator's change, if it is what it was."""
    return await _rewrite_one(db, name, lambda each: with_change(each, changed, was))


async def pause(db: Db, name: str, length: Micros | None) -> Queue:
    """Nothing more is claimed from it, for a time or until resumed."""
    until = None if length is None else to_datetime(await db.now() + length)
    return await _rewrite_one(db, name, lambda each: msgspec.structs.replace(each, paused=True, paused_until=until))


async def resume(db: Db, name: str) -> Queue:
    """It may be claimed from again."""
    return await _rewrite_one(db, name, lambda each: msgspec.structs.replace(each, paused=False, paused_until=None))


async def close(db: Db, name: str) -> Queue:
    """It takes no new jobs."""
    return await _rewrite_one(db, name, lambda each: msgspec.structs.replace(each, closed=True))


async def open_(db: Db, name: str) -> Queue:
    """It takes new jobs again."""
    return await _rewrite_one(db, name, lambda each: msgspec.structs.replace(each, closed=False))


async def queue(db: Db, name: str) -> Queue:
    """One queue; one that nobody has spoken of has the default settings."""
    rows = await db.rows("queues_named", {"names": [name]})
    return _queue_of(rows[0]) if rows else Queue(name=name)


async def all_queues(db: Db) -> list[Queue]:
    """Every queue that was spoken of, or holds jobs."""
    return [_queue_of(row) for row in await db.rows("queues")]


async def _rewrite_one(db: Db, name: str, rewritten: Callable[[Queue], Queue]) -> Queue:
    (record,) = await _rewrite(db, [name], rewritten)
    return record


async def _rewrite(db: Db, names: Collection[str], rewritten: Callable[[Queue], Queue]) -> list[Queue]:
    """Make the rows that are missing, lock all of them in one order, and write them anew."""
    await make_if_new(db, names)
    rows = await db.rows("lock_queues", {"names": list(names)})
    records = [rewritten(_queue_of(row)) for row in rows]
    for record in records:
        await db.run("set_queue", queue_values(record))
    return records


def _queue_of(row: Any) -> Queue:
    *columns, now = row
    name, declared, changed, paused, until, closed = columns
    return to_queue((name, declared, changed, paused, until, closed), now)
