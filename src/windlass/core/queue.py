"""A queue's settings: what the code declares, what an operator changed, and what holds."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from windlass.core.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT, MOST_ATTEMPTS, NO_TIMEOUT
from windlass.core.moments import DAY, SECOND, Micros, duration
from windlass.core.rate import Rate
from windlass.core.retry import DEFAULT_POLICY, StoredPolicy
from windlass.core.status import FINISHED, Status
from windlass.errors import InvalidOption

T = TypeVar("T")

DEFAULT_RETENTION: dict[Status, Micros] = {
    Status.COMPLETED: 7 * DAY,
    Status.CANCELLED: 7 * DAY,
    Status.DEAD: 90 * DAY,
}

NO_LIMIT = 0
NO_RATE = Rate(0, SECOND, 0)
NO_AGEING: Micros = 0
"""What an operator says to lift what the code declares."""

MOST_AT_ONCE = 1_000_000

TOMBSTONE: Micros = DAY
"""How long the id of a dropped job is remembered, so that handing it in again does not run it again."""


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings that somebody gave; None and missing entries mean: not said here."""

    max_attempts: int | None = None
    retry: StoredPolicy | None = None
    timeout: Micros | None = None
    retention: dict[Status, Micros] = {}
    max_concurrency: int | None = None
    """How many may run at once, over all workers; NO_LIMIT: any number, whatever the code says."""
    rate_limit: Rate | None = None
    """How many may start in a while, over all workers; NO_RATE: any number, whatever the code says."""
    fair: bool | None = None
    """Whether tenants share the workers by weight."""
    weights: dict[str, float] = {}
    """Of tenants; those who are not named have 1."""
    ageing: Micros | None = None
    """How long a job waits until it moves up to the next higher priority at which jobs wait; NO_AGEING: for ever."""


class QueueRules(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that hold for a queue."""

    max_attempts: int
    retry: StoredPolicy
    timeout: Micros
    """Of one attempt; NO_TIMEOUT: any length."""
    retention: dict[Status, Micros]
    max_concurrency: int | None = None
    rate_limit: Rate | None = None
    fair: bool = False
    weights: dict[str, float] = {}
    ageing: Micros | None = None

    @property
    def ruled(self) -> bool:
        """Whether a claim must ask more than what waits: limits, or whose turn it is."""
        return self.max_concurrency is not None or self.rate_limit is not None or self.fair


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as people see it: the operator's change stands beside what the code declares, and wins."""

    name: str
    paused: bool = False
    paused_until: datetime | None = None
    closed: bool = False
    """Whether it takes no new jobs; those that are there go on."""
    declared: QueueSettings = QueueSettings()
    changed: QueueSettings = QueueSettings()

    @property
    def rules(self) -> QueueRules:
        """What holds now."""
        return merge(self.declared, self.changed)


def merge(declared: QueueSettings, changed: QueueSettings) -> QueueRules:
    """The operator's word over the code's, and both over the defaults."""
    retry = changed.retry or declared.retry
    budget = changed.max_attempts or declared.max_attempts or (retry.attempts if retry else None)
    return QueueRules(
        max_attempts=budget or DEFAULT_MAX_ATTEMPTS,
        retry=retry or DEFAULT_POLICY,
        timeout=next((t for t in (changed.timeout, declared.timeout) if t is not None), DEFAULT_TIMEOUT),
        retention={**DEFAULT_RETENTION, **declared.retention, **changed.retention},
        max_concurrency=_said(changed.max_concurrency, declared.max_concurrency) or None,
        rate_limit=None if (rate := _said(changed.rate_limit, declared.rate_limit)) == NO_RATE else rate,
        fair=bool(_said(changed.fair, declared.fair)),
        weights={**declared.weights, **changed.weights},
        ageing=_said(changed.ageing, declared.ageing) or None,
    )


def _said(changed: T | None, declared: T | None) -> T | None:
    return declared if changed is None else changed


def settings(
    *,
    max_attempts: int | None = None,
    retry: StoredPolicy | None = None,
    timeout: float | timedelta | None = None,
    retention: Mapping[str, float | timedelta] | None = None,
) -> QueueSettings:
    """Settings as a program gives them, checked."""
    return QueueSettings(
        max_attempts=None if max_attempts is None else check_attempts(max_attempts),
        retry=retry,
        timeout=None if timeout is None else check_timeout(timeout),
        retention={_kept(name): duration(keep, f"retention.{name}") for name, keep in (retention or {}).items()},
    )


def check_attempts(attempts: object, field: str = "max_attempts") -> int:
    """A budget of attempts, within its range."""
    if isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= MOST_ATTEMPTS:
        raise InvalidOption(field, f"must be a whole number from 1 to {MOST_ATTEMPTS}, not {attempts!r}")
    return attempts


def check_timeout(timeout: float | timedelta | None, field: str = "timeout") -> Micros:
    """How long an attempt may take; None stands for any length."""
    if timeout is None:
        return NO_TIMEOUT
    micros = duration(timeout, field)
    if micros == 0:
        raise InvalidOption(field, "must be more than 0 seconds; None means no limit")
    return micros


def _kept(name: str) -> Status:
    if name not in FINISHED:
        raise InvalidOption("retention", f"{name!r} is not one of {', '.join(sorted(FINISHED))}")
    return Status(name)
