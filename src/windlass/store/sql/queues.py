"""Queues: what the code declares, what an operator changed, and whether they are paused or closed.

A queue's row is locked before it is read for a change, so that concurrent changes are serialized.
"""

from collections.abc import Callable, Collection
from typing import Any

import msgspec

from windlass.core.flow.queue import Queue, QueueSettings
from windlass.core.moments import Micros, to_datetime
from windlass.store.queues import queue_values, to_queue, with_change
from windlass.store.sql.session import Session, SharedRole, announcing, reading, writing


async def declare(db: Session, queues: dict[str, QueueSettings]) -> None:
    """Write the declared settings; what an operator changed stays in force."""
    await _rewrite(db, queues, lambda each: msgspec.structs.replace(each, declared=queues[each.name]))


async def is_undeclared(db: Session, queues: dict[str, QueueSettings]) -> bool:
    """Whether `declare` would change anything; takes no lock."""
    found = {row[0]: _queue_of(row) for row in await db.rows("named_queues", {"names": list(queues)})}
    return any(name not in found or found[name].declared != declared for name, declared in queues.items())


async def declare_missing(db: Session, queues: dict[str, QueueSettings]) -> None:
    """Declare the settings if that changes anything."""
    if await is_undeclared(db, queues):
        await declare(db, queues)


async def add_missing(db: Session, names: Collection[str]) -> None:
    """Add queues that do not exist, with the default settings."""
    await db.run("add_queues", {**queue_values(Queue(name="")), "names": sorted(set(names))})


async def change(
    db: Session, name: str, changed: QueueSettings, was: QueueSettings | None = None, version: str | None = None
) -> Queue:
    """Replace what the operator changed, if that is still `was`."""
    return await _rewrite_one(db, name, lambda each: with_change(each, changed, was, version))


async def pause(db: Session, name: str, length: Micros | None, version: str | None = None) -> Queue:
    """Allow no claims from the queue, for this long or until it is resumed."""
    until = None if length is None else to_datetime(await db.now() + length)
    return await _set(db, name, version, paused=True, paused_until=until)


async def resume(db: Session, name: str, version: str | None = None) -> Queue:
    """Allow claims again."""
    return await _set(db, name, version, paused=False, paused_until=None)


async def close(db: Session, name: str, version: str | None = None) -> Queue:
    """Refuse new jobs in the queue."""
    return await _set(db, name, version, closed=True)


async def open_(db: Session, name: str, version: str | None = None) -> Queue:
    """Accept new jobs again."""
    return await _set(db, name, version, closed=False)


async def queue(db: Session, name: str) -> Queue:
    """The queue of this name; an unknown one has the default settings."""
    rows = await db.rows("named_queues", {"names": [name]})
    return _queue_of(rows[0]) if rows else Queue(name=name)


async def all_queues(db: Session) -> list[Queue]:
    """Every queue that was declared, changed, paused or used."""
    return [_queue_of(row) for row in await db.rows("all_queues")]


async def _set(db: Session, name: str, version: str | None, **values: object) -> Queue:
    def rewritten(each: Queue) -> Queue:
        each.check(version)
        return msgspec.structs.replace(each, **values)

    return await _rewrite_one(db, name, rewritten)


async def _rewrite_one(db: Session, name: str, rewritten: Callable[[Queue], Queue]) -> Queue:
    (record,) = await _rewrite(db, [name], rewritten)
    return record


async def _rewrite(db: Session, names: Collection[str], rewritten: Callable[[Queue], Queue]) -> list[Queue]:
    """Add the missing queues, lock all in order, and write what `rewritten` makes of each."""
    await add_missing(db, names)
    records = [rewritten(_queue_of(row)) for row in await db.rows("lock_queues", {"names": list(names)})]
    for record in records:
        await db.run("set_queue", queue_values(record))
    return records


def _queue_of(row: Any) -> Queue:
    name, declared, changed, paused, until, closed, now = row
    return to_queue((name, declared, changed, paused, until, closed), now)


class QueueVerbs(SharedRole):
    """Queues and their settings."""

    async def declare(self, declared: dict[str, QueueSettings]) -> None:
        if await self._sessions.read(lambda db: is_undeclared(db, declared)):
            await self._sessions.write(lambda db: declare(db, declared))

    change = announcing(change)
    pause = writing(pause)
    resume = announcing(resume)
    close = writing(close)
    open = writing(open_)
    list = reading(all_queues)
