"""When a wake-up hint is sent: at once while hints are few, merged with later ones while they are many."""

from windlass.core.flow.rate import Rate, TokenBucket, refilled, spent, wait_for
from windlass.core.moments import SECOND, Micros

HINT_RATE = Rate(tokens=1000, period=SECOND, burst=50)
"""The limit of one process, since each hint wakes every worker."""


def spend_hint(token_bucket: TokenBucket, now: Micros) -> tuple[TokenBucket, Micros]:
    """The token bucket after a hint, and zero; or, if it holds no token, the token bucket now and the time until it
    has one.
    """
    filled = refilled(token_bucket, HINT_RATE, now)
    wait = wait_for(filled, HINT_RATE, 1)
    return (filled, wait) if wait else (spent(filled, 1), 0)
