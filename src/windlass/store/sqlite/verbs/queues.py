"""Queues: their declared and changed settings, pauses and closures."""

import msgspec

from windlass.core.flow.queue import Queue, QueueSettings
from windlass.core.moments import Micros, to_datetime
from windlass.store.queues import queue_values, to_queue, with_change
from windlass.store.sqlite.db import Db


def declare(db: Db, queues: dict[str, QueueSettings]) -> None:
    """Write the declared settings; an operator's change stays."""
    for name, declared in queues.items():
        _write(db, msgspec.structs.replace(queue(db, name), declared=declared))


def undeclared(db: Db, queues: dict[str, QueueSettings]) -> bool:
    """Whether `declare` would change anything; takes no lock."""
    return any(queue(db, name).declared != declared or not _exists(db, name) for name, declared in queues.items())


def make(db: Db, name: str) -> None:
    """Insert a new queue with the default settings."""
    _write(db, Queue(name=name))


def make_if_new(db: Db, name: str) -> None:
    """Insert the queue unless it exists."""
    if not _exists(db, name):
        make(db, name)


def change(db: Db, name: str, changed: QueueSettings, was: QueueSettings | None = None) -> Queue:
    """Replace the operator's change, if it is still `was`."""
    return _write(db, with_change(queue(db, name), changed, was))


def pause(db: Db, name: str, length: Micros | None) -> Queue:
    """Allow no claims from it, for a time or until it is resumed."""
    until = None if length is None else to_datetime(db.now + length)
    return _write(db, msgspec.structs.replace(queue(db, name), paused=True, paused_until=until))


def resume(db: Db, name: str) -> Queue:
    """Allow claims again."""
    return _write(db, msgspec.structs.replace(queue(db, name), paused=False, paused_until=None))


def close(db: Db, name: str) -> Queue:
    """Refuse new jobs."""
    return _write(db, msgspec.structs.replace(queue(db, name), closed=True))


def open_(db: Db, name: str) -> Queue:
    """Accept new jobs again."""
    return _write(db, msgspec.structs.replace(queue(db, name), closed=False))


def queue(db: Db, name: str) -> Queue:
    """One queue; an unknown one has the default settings."""
    rows = db.rows("queue", {"name": name})
    return to_queue(rows[0], db.now) if rows else Queue(name=name)


def all_queues(db: Db) -> list[Queue]:
    """Every queue that was declared, changed, paused or used."""
    return [queue(db, row[0]) for row in db.rows("queue_names")]


def _exists(db: Db, name: str) -> bool:
    return bool(db.rows("queue", {"name": name}))


def _write(db: Db, record: Queue) -> Queue:
    db.run("set_queue", queue_values(record))
    return record
