"""The options of a job in requests and answers: of an enqueued job, and of the job of a schedule."""

from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from windlass.core.codec import decode
from windlass.core.jobs.job import NO_TIMEOUT, NewJob
from windlass.core.jobs.retry import RETRY_IN_META, StoredPolicy, policy_in_meta
from windlass.core.moments import SECOND, Micros, to_datetime


class JobOptionFields(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Options that every job may have. Lengths of time are seconds."""

    queue: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    concurrency_key: str | UnsetType = UNSET
    key_limit: int | UnsetType = UNSET
    key_order: Literal["strict", "any"] | UnsetType = UNSET
    key_rate: str | UnsetType = UNSET
    rate_cost: int | UnsetType = UNSET
    tenant: str | UnsetType = UNSET
    max_attempts: int | UnsetType = UNSET
    retry: StoredPolicy | UnsetType = UNSET
    """Replaces the back-off of task and queue; kept with the job."""
    timeout: float | UnsetType | None = UNSET
    """Null: no limit."""
    expires: float | datetime | UnsetType = UNSET
    """A length, or a moment."""
    tags: list[str] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET


OPTIONS = JobOptionFields.__struct_fields__


def options_of(job: NewJob) -> dict[str, Any]:
    """The options of a job as a request gives them; those that are not set are left out."""
    meta = decode(job.meta) if job.meta else {}
    meta.pop(RETRY_IN_META, None)
    values = {
        "queue": job.queue,
        "priority": job.priority,
        "concurrency_key": job.concurrency_key,
        "key_limit": job.key_limit,
        "key_order": None if job.key_strict is None else "strict" if job.key_strict else "any",
        "key_rate": None if job.key_rate is None else str(job.key_rate),
        "rate_cost": job.rate_cost,
        "tenant": job.tenant,
        "max_attempts": job.max_attempts,
        "retry": policy_in_meta(job.meta),
        "expires": in_seconds(job.expires) if job.expires_at is None else to_datetime(job.expires_at),
        "tags": list(job.tags) or None,
        "meta": meta or None,
    }
    given = {name: value for name, value in values.items() if value is not None}
    if job.timeout is not None:
        given["timeout"] = None if job.timeout == NO_TIMEOUT else in_seconds(job.timeout)
    return given


def in_seconds(micros: Micros | None) -> float | None:
    """A length of time in a request."""
    return None if micros is None else micros / SECOND
