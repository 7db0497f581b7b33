"""What may be said about a task and about one job, checked before anything is stored."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

from windlass.core.codec import check_json, check_size, encode
from windlass.core.ids import check_id
from windlass.core.job import HIGHEST_PRIORITY, LOWEST_PRIORITY
from windlass.core.moments import duration, to_micros
from windlass.core.names import MOST_TAGS, check_key, check_name
from windlass.core.queue import check_attempts, check_timeout
from windlass.core.retry import RetryPolicy
from windlass.errors import InvalidOption


class JobOptions(TypedDict, total=False):
    """What `using(...)` takes."""

    id: str
    queue: str
    priority: int
    delay: float | timedelta
    run_at: datetime
    idempotency_key: str
    tenant: str
    parent: str
    max_attempts: int
    timeout: float | timedelta | None
    tags: Sequence[str]
    meta: Mapping[str, Any]


class TaskOptions(TypedDict, total=False):
    """What `@app.task(...)` takes."""

    type: str
    aliases: Sequence[str]
    queue: str
    priority: int
    retry: RetryPolicy
    max_attempts: int
    timeout: float | timedelta | None
    dead_on: tuple[type[BaseException], ...]
    run_in: Literal["process"]


def check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a NewJob that these options set."""
    unknown = [name for name in options if name not in _CHECKS]
    if unknown:
        raise InvalidOption(unknown[0], f"is not an option; there are {', '.join(sorted(_CHECKS))}")
    if "delay" in options and "run_at" in options:
        raise InvalidOption("delay", "cannot be given together with run_at")
    return {name: _CHECKS[name](value) for name, value in options.items()}


def check_priority(value: object) -> int:
    """A priority, within what every store can order."""
    if isinstance(value, bool) or not isinstance(value, int) or not LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY:
        raise InvalidOption(
            "priority", f"must be a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}, not {value!r}"
        )
    return value


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidOption("tags", f"must be a list of names, not {type(value).__name__}")
    if len(value) > MOST_TAGS:
        raise InvalidOption("tags", f"has {len(value)} entries, the limit is {MOST_TAGS}")
    names = tuple(check_name(tag, f"tags[{i}]") for i, tag in enumerate(value))
    if len(set(names)) < len(names):
        raise InvalidOption("tags", "has an entry twice")
    return names


def _meta(value: Any) -> str:
    if not isinstance(value, Mapping):
        raise InvalidOption("meta", f"must be a mapping, not {type(value).__name__}")
    check_json(dict(value), "meta")
    return check_size(encode(dict(value), "meta"), "meta")


_CHECKS: dict[str, Any] = {
    "id": check_id,
    "queue": lambda value: check_name(value, "queue"),
    "priority": check_priority,
    "delay": lambda value: duration(value, "delay"),
    "run_at": to_micros,
    "idempotency_key": lambda value: check_key(value, "idempotency_key"),
    "tenant": lambda value: check_name(value, "tenant"),
    "parent": lambda value: check_id(value, "parent"),
    "max_attempts": check_attempts,
    "timeout": check_timeout,
    "tags": _tags,
    "meta": _meta,
}
