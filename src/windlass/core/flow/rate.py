"""Rates: tokens per period, with a burst; and their token buckets.

Integers only, so that every store computes the same: a token is worth as many units of credit as its period has
microseconds, and each microsecond adds as many units as the rate has tokens.
"""

import re

import msgspec

from windlass.core.moments import DAY, SECOND, Micros
from windlass.errors import InvalidOption

MAX_TOKENS = 1_000_000
MAX_PERIOD: Micros = DAY
SET_BACK: Micros = 10 * SECOND
"""A token bucket dated this far in the future shows that the clock was set back: it is refilled from now."""
_PERIODS: dict[str, Micros] = {"s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": DAY}
_TEXT = re.compile(r"([0-9]{1,9})\s*/\s*([0-9]{0,9})\s*(s|m|h|d)(?:\s+burst\s+([0-9]{1,9}))?")
_SHAPE = 'such as "10/s", "600/m", "1/h" or "10/s burst 50"'
_PARTS = "a whole number, and a period in s, m, h or d (one in two seconds is 1/2s)"


class Rate(msgspec.Struct, frozen=True, gc=False):
    """At most `tokens` in each `period`, and up to `burst` of them at once."""

    tokens: int
    period: Micros
    burst: int

    def __str__(self) -> str:
        for unit, length in reversed(_PERIODS.items()):
            if self.period % length == 0:
                count = self.period // length
                burst = "" if self.burst == self.tokens else f" burst {self.burst}"
                return f"{self.tokens}/{count if count > 1 else ''}{unit}{burst}"
        raise AssertionError(self.period)


def parse_rate(text: object, field: str) -> Rate:
    """`10/s`, `600/m`, `1/h`, `5/10s`, `10/s burst 50`, checked. The default burst is the tokens of one period."""
    if not isinstance(text, str):
        raise InvalidOption(field, f"must be text {_SHAPE}, not {type(text).__name__}")
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise InvalidOption(field, f"{text!r:.100} is not a rate {_SHAPE}; {_PARTS}")
    tokens, count, unit, burst = int(match[1]), int(match[2] or 1), match[3], match[4]
    rate = Rate(tokens, count * _PERIODS[unit], tokens if burst is None else int(burst))
    if not 1 <= rate.tokens <= MAX_TOKENS:
        problem = f"must let 1 to {MAX_TOKENS} jobs start in a period, not {tokens}; to start none, pause"
        raise InvalidOption(field, problem)
    if not 1 <= rate.burst <= MAX_TOKENS:
        raise InvalidOption(field, f"must have a burst of 1 to {MAX_TOKENS}, not {burst}")
    if not SECOND <= rate.period <= MAX_PERIOD:
        raise InvalidOption(field, f"must have a period of 1 second to 1 day, not {match[2]}{unit}")
    return rate


class TokenBucket(msgspec.Struct, frozen=True):
    """The tokens left of a rate, as `credit` in units of 1/`period`."""

    credit: int
    period: Micros
    at: Micros

    @property
    def tokens(self) -> int:
        """Whole tokens."""
        return max(0, self.credit // self.period)


def full(rate: Rate, now: Micros) -> TokenBucket:
    return TokenBucket(rate.burst * rate.period, rate.period, now)


def refilled(token_bucket: TokenBucket, rate: Rate, now: Micros, outstanding: int = 0) -> TokenBucket:
    """The token bucket's content now, without room for `outstanding` tokens that were granted and may still be spent.

    A clock that was set back adds nothing; a token bucket of another rate keeps the tokens that fit.
    """
    credit = (
        token_bucket.credit
        if token_bucket.period == rate.period
        else token_bucket.credit // token_bucket.period * rate.period
    )
    credit += max(0, now - token_bucket.at) * rate.tokens
    return TokenBucket(
        min(credit, max(0, rate.burst - outstanding) * rate.period), rate.period, max(now, token_bucket.at)
    )


def spent(token_bucket: TokenBucket, tokens: int) -> TokenBucket:
    return TokenBucket(token_bucket.credit - tokens * token_bucket.period, token_bucket.period, token_bucket.at)


def price(cost: int, rate: Rate) -> int:
    """The tokens that a job costs: at most a full token bucket, or it could never start."""
    return min(cost, rate.burst)


def wait_for(token_bucket: TokenBucket, rate: Rate, tokens: int) -> Micros:
    """How long until the token bucket, just refilled, holds this many tokens."""
    missing = min(tokens, rate.burst) * rate.period - token_bucket.credit
    return max(0, -(-missing // rate.tokens))


def ready_at(token_bucket: TokenBucket, rate: Rate, tokens: int) -> Micros:
    """When the token bucket, just refilled, holds this many tokens."""
    return token_bucket.at + wait_for(token_bucket, rate, tokens)
