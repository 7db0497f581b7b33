"""Retry policies: how often, and how long to wait. Pure arithmetic; the random source is given."""

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from windlass.core.codec import UNREADABLE, decode, encode
from windlass.core.jobs.job import DEFAULT_MAX_ATTEMPTS, MAX_ATTEMPTS
from windlass.core.moments import SECOND, Duration, duration
from windlass.core.text import shown
from windlass.errors import ConfigError, InvalidTime

_MAX_EXPONENT = 64
"""The exponent is bounded because factor ** failures overflows."""

_LENGTH = "a duration such as 5 or '30s', from 0 to 100 years"


def _whole(attempts: object) -> bool:
    return isinstance(attempts, int) and _between(1, attempts, MAX_ATTEMPTS)


def _between(least: float, value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _length(value: Any) -> float | None:
    """Seconds; None if it is not a duration."""
    try:
        return duration(value, "") / SECOND
    except InvalidTime:
        return None


@runtime_checkable
class Backoff(Protocol):
    """A retry policy: any object with `attempts` and `seconds` may be the `retry=` of a task."""

    @property
    def attempts(self) -> int:
        """The budget: how many attempts a job has, the first one included."""

    def seconds(self, failures: int, random: Random) -> float:
        """The wait before the next attempt, after this many failures (1 after the first).

        `random` is the source of jitter. If this raises, or returns no duration, the default policy's wait is used.
        """


_Rule = tuple[str, object, str, bool]
"""A field, its value, what it must be, and whether it is."""


def _check(policy: object, rules: list[_Rule]) -> None:
    kind = type(policy).__name__
    problems = [f"{kind}.{field} must be {rule}, not {shown(value)}" for field, value, rule, ok in rules if not ok]
    if problems:
        raise ConfigError(problems)


def _jittered(seconds: float, jitter: float, random: Random) -> float:
    # Jitter goes both ways, so that jobs that failed together do not retry together.
    return seconds * (1 + jitter * (2 * random.random() - 1))


class _NotGiven(int):
    """The default, distinguishable from the same number if that is given."""


class _Policy(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    attempts: int = msgspec.field(default_factory=lambda: _NotGiven(DEFAULT_MAX_ATTEMPTS))
    base: float = 60.0
    cap: float = 3600.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        vars(self)["with_attempts"] = with_attempts = not isinstance(self.attempts, _NotGiven)
        if not with_attempts:
            msgspec.structs.force_setattr(self, "attempts", int(self.attempts))
        base, cap = _length(self.base), _length(self.cap)
        _check(self, self._rules(base, cap))
        msgspec.structs.force_setattr(self, "base", base)
        msgspec.structs.force_setattr(self, "cap", cap)

    def _rules(self, base: float | None, cap: float | None) -> list[_Rule]:
        return [
            ("attempts", self.attempts, f"from 1 to {MAX_ATTEMPTS}", _whole(self.attempts)),
            ("base", self.base, _LENGTH, base is not None),
            ("cap", self.cap, _LENGTH, cap is not None),
            ("jitter", self.jitter, "from 0 to 1", _between(0, self.jitter, 1)),
        ]

    def _spread(self, seconds: float, random: Random) -> float:
        return _jittered(min(seconds, self.cap), self.jitter, random)


class Exponential(_Policy, frozen=True, kw_only=True, tag=True):
    """base, base × factor, base × factor², … up to cap."""

    factor: float = 2.0
    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            attempts: int = ...,
            base: Duration = ...,
            cap: Duration = ...,
            jitter: float = ...,
            factor: float = ...,
        ) -> None: ...

    def _rules(self, base: float | None, cap: float | None) -> list[_Rule]:
        return [*super()._rules(base, cap), ("factor", self.factor, "from 1 to 100", _between(1, self.factor, 100))]

    def seconds(self, failures: int, random: Random) -> float:
        """The wait after the given number of failures (1 after the first)."""
        exponent = min(max(failures, 1) - 1, _MAX_EXPONENT)
        return self._spread(self.base * self.factor**exponent, random)


class Linear(_Policy, frozen=True, kw_only=True, tag=True):
    """base, 2 × base, 3 × base, … up to cap."""

    if TYPE_CHECKING:

        def __init__(
            self, *, attempts: int = ..., base: Duration = ..., cap: Duration = ..., jitter: float = ...
        ) -> None: ...

    def seconds(self, failures: int, random: Random) -> float:
        """The wait after the given number of failures."""
        return self._spread(self.base * max(failures, 1), random)


class Fixed(_Policy, frozen=True, kw_only=True, tag=True):
    """Always base."""

    if TYPE_CHECKING:

        def __init__(
            self, *, attempts: int = ..., base: Duration = ..., cap: Duration = ..., jitter: float = ...
        ) -> None: ...

    def seconds(self, failures: int, random: Random) -> float:
        """The wait, whatever the number of failures."""
        return self._spread(self.base, random)


class _FromWaits(type(msgspec.Struct)):  # type: ignore[misc]
    """Lets the waits be given by position."""

    def __call__(cls, *waits: Any, **fields: Any) -> Any:
        if waits:
            fields["waits"] = waits
        return super().__call__(**{"waits": (), "attempts": len(fields.get("waits", ())) + 1, **fields})


class Steps(msgspec.Struct, frozen=True, kw_only=True, tag=True, metaclass=_FromWaits):
    """Waits one after the other: `Steps(1, 5, "30s", "10m")` has five attempts.

    With more `attempts` the last wait is repeated.
    """

    waits: tuple[float, ...]
    attempts: int
    jitter: float = 0.1
    if TYPE_CHECKING:

        def __init__(self, *waits: Duration, attempts: int = ..., jitter: float = ...) -> None: ...

    def __post_init__(self) -> None:
        waits = tuple(map(_length, self.waits))
        wrong = next((given for given, wait in zip(self.waits, waits, strict=True) if wait is None), None)
        rules: list[_Rule] = [
            ("waits", self.waits, f"1 to {MAX_ATTEMPTS - 1} durations", 0 < len(waits) < MAX_ATTEMPTS),
            ("waits", wrong, "durations from 0 to 100 years, such as Steps(1, '30s')", None not in waits),
            ("attempts", self.attempts, f"from 1 to {MAX_ATTEMPTS}", _whole(self.attempts)),
            ("jitter", self.jitter, "from 0 to 1", _between(0, self.jitter, 1)),
        ]
        _check(self, rules)
        msgspec.structs.force_setattr(self, "waits", waits)

    @property
    def base(self) -> float:
        """The first wait."""
        return self.waits[0]

    def seconds(self, failures: int, random: Random) -> float:
        """The wait after the given number of failures."""
        return _jittered(self.waits[min(max(failures, 1), len(self.waits)) - 1], self.jitter, random)


class ByError(msgspec.Struct, frozen=True):
    """A policy per exception type; the nearest class in the error's ancestry wins.

    The budget of attempts is that of `otherwise`: a job has one budget, whatever the error.
    """

    policies: Mapping[type[BaseException], Backoff]
    otherwise: Backoff = Exponential()

    def __post_init__(self) -> None:
        if not isinstance(self.policies, Mapping):
            raise ConfigError(f"ByError takes a policy for each exception class, not {self.policies!r:.100}")
        problems = [*map(_problem, self.policies, self.policies.values())]
        if not _is_policy(self.otherwise):
            problems.append(f"ByError: otherwise is {self.otherwise!r:.100}, which is {_NO_POLICY}")
        if any(problems):
            raise ConfigError([each for each in problems if each is not None])

    @property
    def attempts(self) -> int:
        """The budget of attempts."""
        return self.otherwise.attempts

    def choose(self, error: type[BaseException]) -> Backoff:
        """The policy for errors of this class."""
        for ancestor in error.__mro__:
            if ancestor in self.policies:
                return self.policies[ancestor]
        return self.otherwise


_NO_POLICY = "no policy: give Exponential, Linear, Fixed, Steps or another Backoff"


def _problem(error: object, policy: object) -> str | None:
    if not (isinstance(error, type) and issubclass(error, BaseException)):
        return f"ByError: {error!r:.100} is not an exception class"
    if not _is_policy(policy):
        return f"ByError: {error.__name__} has {policy!r:.100}, which is {_NO_POLICY}"
    if isinstance(policy, _Policy) and vars(policy)["with_attempts"]:
        return (
            f"ByError: the policy of {error.__name__} has attempts={policy.attempts}; a job has one budget "
            "of attempts, whatever the error: give them to `otherwise`"
        )
    return None


def _is_policy(policy: object) -> bool:
    # A class has the method too, but is not a policy.
    return callable(getattr(policy, "seconds", None)) and not isinstance(policy, type)


RetryPolicy = Backoff | ByError
"""The policies of a task."""
StoredPolicy = Exponential | Linear | Fixed | Steps
"""The policies that a queue or a job may keep in the store; exception classes and objects exist only in code."""

DEFAULT_POLICY = Exponential()


RETRY_IN_META = "windlass.retry"
"""The key in a job's meta for its own policy."""


def add_to_meta(meta: str | None, policy: StoredPolicy) -> str:
    """A job's meta with its policy."""
    return encode({**(decode(meta) if meta else {}), RETRY_IN_META: policy}, "meta")


class _Meta(msgspec.Struct, rename={"retry": RETRY_IN_META}):
    retry: StoredPolicy | None = None


def policy_in_meta(meta: str | None) -> StoredPolicy | None:
    """The job's own policy; None if it has none, or one that was edited by hand and cannot be read."""
    try:
        return msgspec.json.decode(meta, type=_Meta).retry if meta and RETRY_IN_META in meta else None
    except (*UNREADABLE, ConfigError):
        return None


def wait_after(policy: RetryPolicy, error: BaseException, failures: int, random: Random) -> float:
    """Seconds until the next attempt of a job that just failed with `error` for the `failures`-th time."""
    backoff = policy.choose(type(error)) if isinstance(policy, ByError) else policy
    return backoff.seconds(failures, random)
