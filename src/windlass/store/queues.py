"""Queues in rows: declared and changed settings as JSON, derived values as columns."""

from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.core.flow.queue import DEFAULT_RETENTION, Queue, QueueSettings, merge
from windlass.core.moments import Micros, to_datetime
from windlass.core.status import Status

_settings = msgspec.json.Decoder(QueueSettings)


def to_queue(row: tuple[str, str, str, int, int | None, int], now: Micros) -> Queue:
    """A row of name, declared, changed, paused, paused_until and closed; an expired pause is none."""
    name, declared, changed, paused, until, closed = row
    over = until is not None and until <= now
    return Queue(
        name=name,
        paused=bool(paused) and not over,
        paused_until=None if until is None or over else to_datetime(until),
        closed=bool(closed),
        declared=_settings.decode(declared),
        changed=_settings.decode(changed),
    )


def with_change(
    record: Queue, changed: QueueSettings, was: QueueSettings | None, version: str | None = None
) -> Queue:
    """The queue with new operator's settings; unchanged if the present ones are not `was`."""
    record.check(version)
    return msgspec.structs.replace(record, changed=changed) if was in (None, record.changed) else record


def queue_values(record: Queue) -> dict[str, Any]:
    """A queue's values by column."""
    rules = merge(record.declared, record.changed)
    until = record.paused_until
    return {
        "name": record.name,
        "declared": msgspec.json.encode(record.declared).decode(),
        "changed": msgspec.json.encode(record.changed).decode(),
        "paused": bool(record.paused),
        "paused_until": None if until is None else round(until.timestamp() * 1_000_000),
        "closed": bool(record.closed),
        "max_attempts": rules.max_attempts,
        "timeout": rules.timeout,
        "keep_completed": rules.retention[Status.COMPLETED],
        "keep_cancelled": rules.retention[Status.CANCELLED],
        "keep_dead": rules.retention[Status.DEAD],
        "max_concurrency": rules.max_concurrency,
        "rate_limit": None if rules.rate_limit is None else str(rules.rate_limit),
        "fair": rules.fair,
        "ageing": rules.ageing,
        "limited": rules.limited,
    }


def retention_of(row: Sequence[Micros] | None, status: Status) -> Micros:
    """The retention of a job with this status, by its queue's keep_completed, keep_cancelled and keep_dead."""
    if row is None:
        return DEFAULT_RETENTION[status]
    kept = dict(zip((Status.COMPLETED, Status.CANCELLED, Status.DEAD), row, strict=True))
    return int(kept[status])
