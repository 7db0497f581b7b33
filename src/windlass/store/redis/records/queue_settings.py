"""The hash of a queue: the settings that all stores write, and values derived from them for scripts."""

from typing import Any

import msgspec

from windlass.core.flow.queue import Queue
from windlass.core.moments import Micros
from windlass.store.queues import queue_values, to_queue

READ = ("name", "declared", "changed", "paused", "paused_until", "closed")
"""The fields that `to_queue` takes, in its order."""


def kept_settings(queue: Queue) -> dict[str, str | int]:
    """Everything that is written of a queue, by field; a missing value is None.

    `rate_tokens`, `rate_period`, `rate_burst` and `weights` (JSON) are derived, for scripts.
    """
    rules = queue.rules
    values: dict[str, Any] = queue_values(queue)
    if rules.rate_limit is not None:
        rate = rules.rate_limit
        values |= {"rate_tokens": rate.tokens, "rate_period": rate.period, "rate_burst": rate.burst}
    if rules.weights:
        values["weights"] = msgspec.json.encode(rules.weights).decode()
    present = {field: value for field, value in values.items() if value is not None}
    return {field: int(value) if isinstance(value, bool) else value for field, value in present.items()}


FIELDS = (*queue_values(Queue(name="")), "rate_tokens", "rate_period", "rate_burst", "weights")
"""All fields that `kept_settings` may return."""


def queue_of(name: str, values: list[bytes | None], now: Micros) -> Queue:
    """A queue from its fields `READ`; a new one has the default settings."""
    _, declared, changed, paused, until, closed = (None if each is None else each.decode() for each in values)
    row = (
        name,
        declared or "{}",
        changed or "{}",
        int(paused or 0),
        None if until is None else int(until),
        int(closed or 0),
    )
    return to_queue(row, now)
