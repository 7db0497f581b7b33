"""Queues: what the code declares, what an operator changed, and whether they are paused."""

from typing import Any

import msgspec

from windlass.core.moments import Micros, to_datetime
from windlass.core.queue import Queue, QueueSettings, merge
from windlass.core.status import Status
from windlass.store.sqlite.db import Db

_settings = msgspec.json.Decoder(QueueSettings)


def declare(db: Db, queues: dict[str, QueueSettings]) -> None:
    """What the code says; the operator's change beside it stays."""
    for name, declared in queues.items():
        _write(db, msgspec.structs.replace(queue(db, name), declared=declared))


def undeclared(db: Db, queues: dict[str, QueueSettings]) -> bool:
    """A look without a lock: whether anything would change."""
    return any(queue(db, name).declared != declared or not _exists(db, name) for name, declared in queues.items())


def make(db: Db, name: str) -> None:
    """A queue that is used for the first time, with the default settings."""
    _write(db, Queue(name=name))


def make_if_new(db: Db, name: str) -> None:
    """A queue that may not have been used yet."""
    if not _exists(db, name):
        make(db, name)


def change(db: Db, name: str, changed: QueueSettings) -> Queue:
    """Replace the operator's change."""
    return _write(db, msgspec.structs.replace(queue(db, name), changed=changed))


def pause(db: Db, name: str, length: Micros | None) -> Queue:
    """Nothing more is claimed from it, for a time or until resumed."""
    until = None if length is None else to_datetime(db.now + length)
    return _write(db, msgspec.structs.replace(queue(db, name), paused=True, paused_until=until))


def resume(db: Db, name: str) -> Queue:
    """It may be claimed from again."""
    return _write(db, msgspec.structs.replace(queue(db, name), paused=False, paused_until=None))


def queue(db: Db, name: str) -> Queue:
    """One queue; one that nobody has spoken of has the default settings."""
    rows = db.rows("queue", {"name": name})
    return _record(db, rows[0]) if rows else Queue(name=name)


def all_queues(db: Db) -> list[Queue]:
    """Every queue that was spoken of, or holds jobs."""
    return [queue(db, row[0]) for row in db.rows("queue_names")]


def _exists(db: Db, name: str) -> bool:
    return bool(db.rows("queue", {"name": name}))


def _record(db: Db, row: tuple[str, str, str, int, int | None]) -> Queue:
    name, declared, changed, paused, until = row
    over = until is not None and until <= db.now
    return Queue(
        name=name,
        paused=bool(paused) and not over,
        paused_until=None if until is None or over else to_datetime(until),
        declared=_settings.decode(declared),
        changed=_settings.decode(changed),
    )


def _write(db: Db, record: Queue) -> Queue:
    rules = merge(record.declared, record.changed)
    until = record.paused_until
    values: dict[str, Any] = {
        "name": record.name,
        "declared": msgspec.json.encode(record.declared).decode(),
        "changed": msgspec.json.encode(record.changed).decode(),
        "paused": int(record.paused),
        "paused_until": None if until is None else round(until.timestamp() * 1_000_000),
        "max_attempts": rules.max_attempts,
        "timeout": rules.timeout,
        "keep_completed": rules.retention[Status.COMPLETED],
        "keep_cancelled": rules.retention[Status.CANCELLED],
        "keep_dead": rules.retention[Status.DEAD],
    }
    db.run("set_queue", values)
    return record
