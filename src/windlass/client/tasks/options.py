"""The options of tasks and jobs, checked before anything is stored."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from windlass.client.tasks.keys import check_key_options, key_fields
from windlass.core.codec import check_json, check_size, encode
from windlass.core.flow.queue import check_attempts, check_timeout
from windlass.core.ids import JobRef, check_id
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import MAX_PRIORITY, MIN_PRIORITY
from windlass.core.jobs.retry import RETRY_IN_META, RetryPolicy, StoredPolicy, add_to_meta
from windlass.core.moments import Duration, duration, to_micros
from windlass.core.names import MAX_CONCURRENCY_KEY_LENGTH, MAX_TAGS, check_key, check_name
from windlass.core.suggest import unknown_option
from windlass.core.text import shown
from windlass.errors import InvalidOption


class JobOptions(TypedDict, total=False):
    """What `using(...)` takes."""

    id: JobRef
    queue: str
    priority: int
    delay: Duration
    run_at: datetime
    idempotency_key: str
    idempotency_window: Duration
    on_conflict: Literal["existing", "replace", "raise"]
    concurrency_key: str
    """A value, not a template; keys belong to a queue."""
    key_limit: int
    key_order: Literal["strict", "any"]
    key_rate: str
    rate_cost: int
    tenant: str
    parent: JobRef
    max_attempts: int
    retry: StoredPolicy
    """Replaces the back-off of the task, and its budget unless `max_attempts` is given too; kept with the job."""
    timeout: Duration | None
    expires: Duration | datetime
    tags: Sequence[str]
    meta: Mapping[str, Any]
    connection: object
    """The connection whose transaction the jobs are part of; not a field of a job."""


class TaskOptions(TypedDict, total=False):
    """What `@app.task(...)` takes."""

    type: str
    aliases: Sequence[str]
    queue: str
    priority: int
    retry: RetryPolicy
    max_attempts: int
    timeout: Duration | None
    dead_on: tuple[type[BaseException], ...]
    concurrency_key: str
    """A value, or a template over the arguments: "album:{album}"."""
    key_limit: int
    key_order: Literal["strict", "any"]
    key_rate: str
    rate_cost: int
    run_in: Literal["process"]


def check_options(options: Mapping[str, Any]) -> dict[str, Any]:
    known = JobOptions.__annotations__
    unknown = [name for name in options if name not in known]
    if unknown:
        raise unknown_option(unknown[0], known, "an option")
    if "delay" in options and "run_at" in options:
        raise InvalidOption("delay", "cannot be given together with run_at")
    fields = {name: _CHECKS[name](value) for name, value in options.items() if name in _CHECKS}
    fields |= key_fields(options)
    if "retry" in fields and "max_attempts" not in fields:
        fields["max_attempts"] = fields["retry"].attempts
    return {**fields, **_expires(options["expires"])} if "expires" in options else fields


def job_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a NewJob, from all options of a job, those of its task and its own; checked together."""
    check_together(fields)
    if (policy := fields.pop("retry", None)) is not None:
        fields["meta"] = check_size(add_to_meta(fields.get("meta"), policy), "meta")
    return fields


def check_together(fields: Mapping[str, Any]) -> None:
    """Check the options that task and call set together."""
    if fields.get("idempotency_key") is None:
        for name in ("idempotency_window", "on_conflict"):
            if name in fields:
                raise InvalidOption(name, "has no effect without an idempotency_key")
    check_key_options(fields, keyed=fields.get("concurrency_key") is not None)
    due, over = fields.get("run_at"), fields.get("expires_at")
    if due is None and over is None:
        due, over = fields.get("delay", 0), fields.get("expires")
    if due is not None and over is not None and due >= over:
        raise InvalidOption("expires", "is not after the time at which the job is due: it could never start")


def check_priority(value: object) -> int:
    """A priority within the range of every store."""
    if isinstance(value, bool) or not isinstance(value, int) or not MIN_PRIORITY <= value <= MAX_PRIORITY:
        raise InvalidOption(
            "priority", f"must be a whole number from {MIN_PRIORITY} to {MAX_PRIORITY}, not {shown(value)}"
        )
    return value


def _expires(value: Any) -> dict[str, Any]:
    """Set `expires_in` or `expires_at` and clear the other, so that the last one given wins."""
    if isinstance(value, datetime):
        return {"expires": None, "expires_at": to_micros(value, "expires")}
    micros = duration(value, "expires")
    if micros == 0:
        raise InvalidOption("expires", "must be more than 0 seconds")
    return {"expires": micros, "expires_at": None}


def _on_conflict(value: Any) -> OnConflict:
    if value not in tuple(OnConflict):
        raise InvalidOption("on_conflict", f"{value!r:.100} is not one of {', '.join(OnConflict)}")
    return OnConflict(value)


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidOption("tags", f"must be a list of names, not {type(value).__name__}")
    if len(value) > MAX_TAGS:
        raise InvalidOption("tags", f"has {len(value)} entries, the limit is {MAX_TAGS}", limit=MAX_TAGS)
    names = tuple(check_name(tag, f"tags[{i}]") for i, tag in enumerate(value))
    if len(set(names)) < len(names):
        raise InvalidOption("tags", "has an entry twice")
    return names


def _retry(value: Any) -> StoredPolicy:
    if not isinstance(value, StoredPolicy):
        reason = "it is kept with the job, and other policies are code"
        raise InvalidOption("retry", f"must be Exponential, Linear, Fixed or Steps, not {shown(value)}: {reason}")
    return value


def _meta(value: Any) -> str:
    if not isinstance(value, Mapping):
        raise InvalidOption("meta", f"must be a mapping, not {type(value).__name__}")
    if RETRY_IN_META in value:
        raise InvalidOption("meta", f"has {RETRY_IN_META!r}, which holds a job's own policy: give using(retry=...)")
    check_json(dict(value), "meta")
    return check_size(encode(dict(value), "meta"), "meta")


_CHECKS: dict[str, Any] = {
    "id": check_id,
    "queue": lambda value: check_name(value, "queue"),
    "priority": check_priority,
    "delay": lambda value: duration(value, "delay"),
    "run_at": to_micros,
    "idempotency_key": lambda value: check_key(value, "idempotency_key"),
    "idempotency_window": lambda value: duration(value, "idempotency_window"),
    "on_conflict": _on_conflict,
    "concurrency_key": lambda value: check_key(value, "concurrency_key", MAX_CONCURRENCY_KEY_LENGTH),
    "tenant": lambda value: check_name(value, "tenant"),
    "parent": lambda value: check_id(value, "parent"),
    "max_attempts": check_attempts,
    "retry": _retry,
    "timeout": check_timeout,
    "expires": _expires,
    "tags": _tags,
    "meta": _meta,
}
