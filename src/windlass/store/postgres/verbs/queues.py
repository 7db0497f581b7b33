"""Queues: what the code declares, what an operator changed, and whether they are paused.

A queue's row is locked before it is read for a change, so that concurrent changes are serialized.
"""

from collections.abc import Callable, Collection
from typing import Any

import msgspec

from windlass.core.flow.queue import Queue, QueueSettings
from windlass.core.moments import Micros, to_datetime
from windlass.store.postgres.connection.db import Db
from windlass.store.queues import queue_values, to_queue, with_change


async def declare(db: Db, queues: dict[str, QueueSettings]) -> None:
    """What the code says; the operator's change beside it stays."""
    await _rewrite(db, queues, lambda each: msgspec.structs.replace(each, declared=queues[each.name]))


async def undeclared(db: Db, queues: dict[str, QueueSettings]) -> bool:
    """A look without a lock: whether anything would change."""
    found = {row[0]: _queue_of(row) for row in await db.rows("queues_named", {"names": list(queues)})}
    return any(name not in found or found[name].declared != declared for name, declared in queues.items())


async def make_if_new(db: Db, names: Collection[str]) -> None:
    """Add queues that do not exist, with the default settings."""
    values = queue_values(Queue(name=""))
    await db.run("add_queues", {**values, "names": sorted(set(names))})


async def change(db: Db, name: str, changed: QueueSettings, was: QueueSettings | None = None) -> Queue:
    """Replace the operator's change, if it is what it was."""
    return await _rewrite_one(db, name, lambda each: with_change(each, changed, was))


async def pause(db: Db, name: str, length: Micros | None) -> Queue:
    """Claim nothing more from it, for a time or until it is resumed."""
    until = None if length is None else to_datetime(await db.now() + length)
    return await _rewrite_one(db, name, lambda each: msgspec.structs.replace(each, paused=True, paused_until=until))


async def resume(db: Db, name: str) -> Queue:
    return await _rewrite_one(db, name, lambda each: msgspec.structs.replace(each, paused=False, paused_until=None))


async def close(db: Db, name: str) -> Queue:
    return await _rewrite_one(db, name, lambda each: msgspec.structs.replace(each, closed=True))


async def open_(db: Db, name: str) -> Queue:
    return await _rewrite_one(db, name, lambda each: msgspec.structs.replace(each, closed=False))


async def is_closed(db: Db, name: str) -> bool:
    return (await queue(db, name)).closed


async def queue(db: Db, name: str) -> Queue:
    """One queue; an unknown one has the default settings."""
    rows = await db.rows("queues_named", {"names": [name]})
    return _queue_of(rows[0]) if rows else Queue(name=name)


async def all_queues(db: Db) -> list[Queue]:
    """Every queue that was declared, changed or used."""
    return [_queue_of(row) for row in await db.rows("queues")]


async def _rewrite_one(db: Db, name: str, rewritten: Callable[[Queue], Queue]) -> Queue:
    (record,) = await _rewrite(db, [name], rewritten)
    return record


async def _rewrite(db: Db, names: Collection[str], rewritten: Callable[[Queue], Queue]) -> list[Queue]:
    """Add missing rows, lock all in order, and write them."""
    await make_if_new(db, names)
    rows = await db.rows("lock_queues", {"names": list(names)})
    before = [_queue_of(row) for row in rows]
    records = [rewritten(each) for each in before]
    for old, record in zip(before, records, strict=True):
        await db.run("set_queue", queue_values(record))
        if old.rules.max_concurrency is None and record.rules.max_concurrency is not None:
            await db.run("reset_quotas", {"queue": record.name})
    return records


def _queue_of(row: Any) -> Queue:
    *columns, now = row
    name, declared, changed, paused, until, closed = columns
    return to_queue((name, declared, changed, paused, until, closed), now)
