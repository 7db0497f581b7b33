"""A queue's settings: declared by code, changed by an operator, and the effective rules."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack

import msgspec

from windlass.core.flow.fairness import MAX_WEIGHT, MIN_WEIGHT
from windlass.core.flow.rate import Rate, parse_rate
from windlass.core.jobs.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT, MAX_ATTEMPTS, NO_TIMEOUT
from windlass.core.jobs.retry import DEFAULT_POLICY, StoredPolicy
from windlass.core.moments import DAY, SECOND, Duration, Micros, duration
from windlass.core.names import check_name
from windlass.core.status import FINISHED, Status
from windlass.core.suggest import unknown_option
from windlass.core.text import shown
from windlass.errors import ChangedSince, InvalidOption

T = TypeVar("T")

DEFAULT_RETENTION: dict[Status, Micros] = {
    Status.COMPLETED: 7 * DAY,
    Status.CANCELLED: 7 * DAY,
    Status.DEAD: 90 * DAY,
}

NO_LIMIT = 0
NO_RATE = Rate(0, SECOND, 0)
NO_AGEING: Micros = 0
"""Values by which an operator removes what the code declares."""

NONE: Final = "none"
"""How programs spell these values."""

MAX_AT_ONCE = 1_000_000
MAX_WEIGHTS = 1_000

TOMBSTONE_RETENTION: Micros = DAY
"""How long the id of a dropped job is kept, so that enqueueing it again does not run it again."""


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings as given; None and missing entries mean: not set here."""

    max_attempts: int | None = None
    retry: StoredPolicy | None = None
    timeout: Micros | None = None
    retention: dict[Status, Micros] = {}
    max_concurrency: int | None = None
    """Jobs that may run at once, over all workers; NO_LIMIT: any number, whatever the code declares."""
    rate_limit: Rate | None = None
    """The rate at which jobs may start, over all workers; NO_RATE: any, whatever the code declares."""
    fair: bool | None = None
    """Whether tenants share the workers by weight."""
    weights: dict[str, float] = {}
    """Weights of tenants; the default is 1."""
    ageing: Micros | None = None
    """How long a job waits until it moves up to the next higher priority in use; NO_AGEING: it never does."""


class QueueOptions(TypedDict, total=False):
    """The arguments of `app.queue` and `app.queues.set`."""

    max_attempts: int | None
    retry: StoredPolicy | None
    timeout: Duration | None
    retention: Mapping[str, Duration] | None
    max_concurrency: int | Literal["none"] | None
    rate_limit: str | None
    fair: bool | None
    weights: Mapping[str, float] | None
    ageing: Duration | None


class QueueRules(msgspec.Struct, frozen=True, kw_only=True):
    """The effective settings of a queue."""

    max_attempts: int
    retry: StoredPolicy
    timeout: Micros
    """The longest time of one attempt; NO_TIMEOUT: any length."""
    retention: dict[Status, Micros]
    max_concurrency: int | None = None
    rate_limit: Rate | None = None
    fair: bool = False
    weights: dict[str, float] = {}
    ageing: Micros | None = None

    @property
    def limited(self) -> bool:
        """Whether a claim must check limits, rates or tenants."""
        return self.max_concurrency is not None or self.rate_limit is not None or self.fair


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as users see it: an operator's changes override what the code declares."""

    name: str
    paused: bool = False
    paused_until: datetime | None = None
    closed: bool = False
    """Whether it refuses new jobs; existing ones still run."""
    declared: QueueSettings = QueueSettings()
    changed: QueueSettings = QueueSettings()

    @property
    def rules(self) -> QueueRules:
        """The effective settings."""
        return merge(self.declared, self.changed)

    @property
    def version(self) -> str:
        """Changes with every change of the queue's settings or state, not with its jobs."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]

    def check(self, version: str | None) -> None:
        """Raise ChangedSince if a version is given and the queue has another one."""
        if version not in (None, self.version):
            raise ChangedSince(f"queue {self.name!r}", self.version)


def merge(declared: QueueSettings, changed: QueueSettings) -> QueueRules:
    """The operator's settings over the code's, and both over the defaults."""
    retry = changed.retry or declared.retry
    budget = changed.max_attempts or declared.max_attempts or (retry.attempts if retry else None)
    return QueueRules(
        max_attempts=budget or DEFAULT_MAX_ATTEMPTS,
        retry=retry or DEFAULT_POLICY,
        timeout=next((t for t in (changed.timeout, declared.timeout) if t is not None), DEFAULT_TIMEOUT),
        retention={**DEFAULT_RETENTION, **declared.retention, **changed.retention},
        max_concurrency=_effective(changed.max_concurrency, declared.max_concurrency) or None,
        rate_limit=None if (rate := _effective(changed.rate_limit, declared.rate_limit)) == NO_RATE else rate,
        fair=bool(_effective(changed.fair, declared.fair)),
        weights={**declared.weights, **changed.weights},
        ageing=_effective(changed.ageing, declared.ageing) or None,
    )


def _effective(changed: T | None, declared: T | None) -> T | None:
    return declared if changed is None else changed


def settings(**options: Unpack[QueueOptions]) -> QueueSettings:
    """Check the options and return them as settings; None: not set."""
    unknown = [name for name in options if name not in _CHECKS]
    if unknown:
        raise unknown_option(unknown[0], _CHECKS, "a setting of a queue")
    return QueueSettings(**{name: _CHECKS[name](value) for name, value in options.items() if value is not None})


def amended(before: QueueSettings, added: QueueSettings) -> QueueSettings:
    """The operator's settings with the given ones added or replaced."""
    given = {name: value for name in added.__struct_fields__ if (value := getattr(added, name)) not in (None, {})}
    for name in given.keys() & {"retention", "weights"}:
        given[name] = {**getattr(before, name), **given[name]}
    _check_number(given.get("weights", {}))
    return msgspec.structs.replace(before, **given)


def without(before: QueueSettings, names: Iterable[str]) -> QueueSettings:
    """The operator's settings without the named ones; without names, no settings."""
    chosen = tuple(names) or QueueSettings.__struct_fields__
    for name in chosen:
        if name not in _CHECKS:
            raise InvalidOption(
                "setting", f"{shown(name)} is not a setting of a queue; there are {', '.join(_CHECKS)}"
            )
    return msgspec.structs.replace(before, **{name: getattr(_NOTHING, name) for name in chosen})


def check_attempts(attempts: object, field: str = "max_attempts") -> int:
    if isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= MAX_ATTEMPTS:
        raise InvalidOption(field, f"must be a whole number from 1 to {MAX_ATTEMPTS}, not {shown(attempts)}")
    return attempts


def check_timeout(timeout: Duration | None, field: str = "timeout") -> Micros:
    """The longest time of an attempt; None: no limit."""
    if timeout is None:
        return NO_TIMEOUT
    micros = duration(timeout, field)
    if micros == 0:
        raise InvalidOption(field, "must be more than 0 seconds; None means no limit")
    return micros


def _timeout(value: Any) -> Micros:
    return NO_TIMEOUT if value == NONE else check_timeout(value)


def _retry(value: Any) -> StoredPolicy:
    if not isinstance(value, StoredPolicy):
        raise InvalidOption("retry", f"must be Exponential, Linear, Fixed or Steps, not {type(value).__name__}")
    return value


def _retention(value: Any) -> dict[Status, Micros]:
    if not isinstance(value, Mapping):
        raise InvalidOption("retention", f"must be a mapping of status to duration, not {type(value).__name__}")
    return {_finished_status(name): duration(keep, f"retention.{name}") for name, keep in value.items()}


def _finished_status(name: Any) -> Status:
    if name not in FINISHED:
        raise InvalidOption("retention", f"{shown(name)} is not one of {', '.join(sorted(FINISHED))}")
    return Status(name)


def _at_once(value: Any) -> int:
    if value == NONE:
        return NO_LIMIT
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_AT_ONCE:
        stop = "; to start none, pause the queue" if value == 0 and not isinstance(value, bool) else ""
        raise InvalidOption(
            "max_concurrency", f'must be a whole number from 1 to {MAX_AT_ONCE}, or "none", not {shown(value)}{stop}'
        )
    return value


def _rate(value: Any) -> Rate:
    return NO_RATE if value == NONE else parse_rate(value, "rate_limit")


def _fair(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidOption("fair", f"must be True or False, not {shown(value)}")
    return value


def _weights(value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise InvalidOption("weights", f"must be a mapping of tenant to weight, not {type(value).__name__}")
    _check_number(value)
    return {check_name(tenant, "weights"): _weight(tenant, weight) for tenant, weight in value.items()}


def _weight(tenant: str, weight: Any) -> float:
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        limits = f"must be a number from {MIN_WEIGHT:g} to {MAX_WEIGHT:g}"
        raise InvalidOption(f"weights.{tenant}", f"{limits}, not {shown(weight)}")
    return float(weight)


def _check_number(weights: Mapping[str, float]) -> None:
    if len(weights) > MAX_WEIGHTS:
        problem = f"has {len(weights)} tenants, the limit is {MAX_WEIGHTS}; others have the weight 1"
        raise InvalidOption("weights", problem, limit=MAX_WEIGHTS)


def _ageing(value: Any) -> Micros:
    if value == NONE:
        return NO_AGEING
    micros = duration(value, "ageing")
    if micros == 0:
        raise InvalidOption("ageing", 'must be more than 0 seconds; "none" turns it off')
    return micros


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "max_attempts": lambda value: check_attempts(value),
    "retry": _retry,
    "timeout": _timeout,
    "retention": _retention,
    "max_concurrency": _at_once,
    "rate_limit": _rate,
    "fair": _fair,
    "weights": _weights,
    "ageing": _ageing,
}
_NOTHING = QueueSettings()
