"""Retry policies: how often, and how long to wait. Pure arithmetic; the random source is given."""

from collections.abc import Mapping
from random import Random
from typing import Protocol

import msgspec

from windlass.core.jobs.job import DEFAULT_MAX_ATTEMPTS, MAX_ATTEMPTS
from windlass.errors import ConfigError

_MAX_EXPONENT = 64
"""factor ** failures overflows long before any cap does."""


_CENTURY = 3_153_600_000


def _whole(attempts: object) -> bool:
    return isinstance(attempts, int) and _between(1, attempts, MAX_ATTEMPTS)


def _between(least: float, value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


class Backoff(Protocol):
    """What every policy answers: the budget of attempts, and the wait before the next one."""

    @property
    def attempts(self) -> int: ...

    def seconds(self, failures: int, random: Random) -> float: ...


class _NotGiven(int):
    """A default that can be told from the same number given."""


class _Policy(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    attempts: int = _NotGiven(DEFAULT_MAX_ATTEMPTS)
    base: float = 60.0
    cap: float = 3600.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        vars(self)["with_attempts"] = with_attempts = not isinstance(self.attempts, _NotGiven)
        if not with_attempts:
            msgspec.structs.force_setattr(self, "attempts", int(self.attempts))
        problems = [
            f"{type(self).__name__}.{field} must be {rule}, not {value!r}"
            for field, value, rule, ok in self._rules()
            if not ok
        ]
        if problems:
            raise ConfigError(problems)

    def _rules(self) -> list[tuple[str, object, str, bool]]:
        return [
            ("attempts", self.attempts, f"from 1 to {MAX_ATTEMPTS}", _whole(self.attempts)),
            ("base", self.base, "seconds from 0 to 100 years", _between(0, self.base, _CENTURY)),
            ("cap", self.cap, "seconds from 0 to 100 years", _between(0, self.cap, _CENTURY)),
            ("jitter", self.jitter, "from 0 to 1", _between(0, self.jitter, 1)),
        ]

    def _spread(self, seconds: float, random: Random) -> float:
        # Jitter goes both ways, so that jobs that failed together do not retry together.
        return min(seconds, self.cap) * (1 + self.jitter * (2 * random.random() - 1))


class Exponential(_Policy, frozen=True, kw_only=True, tag=True):
    """base, base × factor, base × factor², … up to cap."""

    factor: float = 2.0

    def _rules(self) -> list[tuple[str, object, str, bool]]:
        return [*super()._rules(), ("factor", self.factor, "from 1 to 100", _between(1, self.factor, 100))]

    def seconds(self, failures: int, random: Random) -> float:
        """The wait after the given number of failures (1 after the first)."""
        exponent = min(max(failures, 1) - 1, _MAX_EXPONENT)
        return self._spread(self.base * self.factor**exponent, random)


class Linear(_Policy, frozen=True, kw_only=True, tag=True):
    """base, 2 × base, 3 × base, … up to cap."""

    def seconds(self, failures: int, random: Random) -> float:
        """The wait after the given number of failures."""
        return self._spread(self.base * max(failures, 1), random)


class Fixed(_Policy, frozen=True, kw_only=True, tag=True):
    """Always base."""

    def seconds(self, failures: int, random: Random) -> float:
        """The wait, whatever the number of failures."""
        return self._spread(self.base, random)


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


_NO_POLICY = "no policy: give Exponential, Linear or Fixed"


def _problem(error: object, policy: object) -> str | None:
    if not (isinstance(error, type) and issubclass(error, BaseException)):
        return f"ByError: {error!r:.100} is no exception class"
    if not _is_policy(policy):
        return f"ByError: {error.__name__} has {policy!r:.100}, which is {_NO_POLICY}"
    if isinstance(policy, _Policy) and vars(policy)["with_attempts"]:
        return (
            f"ByError: the policy of {error.__name__} has attempts={policy.attempts}; a job has one budget "
            "of attempts, whatever the error: give them to `otherwise`"
        )
    return None


def _is_policy(policy: object) -> bool:
    # A class has the method too, but waits for no failures.
    return callable(getattr(policy, "seconds", None)) and not isinstance(policy, type)


RetryPolicy = Exponential | Linear | Fixed | ByError
StoredPolicy = Exponential | Linear | Fixed
"""The policies that a queue may keep in the store: exception classes exist only in code."""

DEFAULT_POLICY = Exponential()


def wait_after(policy: RetryPolicy, error: BaseException, failures: int, random: Random) -> float:
    """Seconds until the next attempt of a job that just failed with `error` for the `failures`-th time."""
    backoff = policy.choose(type(error)) if isinstance(policy, ByError) else policy
    return backoff.seconds(failures, random)
