"""Rates: to start, a job spends tokens of its queue's and its key's token bucket (core/flow/rate_check.py).

Token buckets are locked until the jobs are claimed, and written with the moment of the claim: a process that is
stopped in between starts its jobs late, but not more than the rate allows. While a queue has plenty of tokens, a
runner is granted some in advance, valid for a quarter of a second: its next claims need no token bucket.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from windlass.core.flow.rate import Rate, TokenBucket, full, parse_rate, price, refilled, spent, wait_for
from windlass.core.flow.rate_check import StartCost, Throttled, TokenBuckets, check_rates
from windlass.core.moments import SECOND, Micros
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits.cursors import Candidate

QUEUE_TOKEN_BUCKET = ""
"""The key of the queue's own token bucket."""
AHEAD: Micros = SECOND // 4
"""How long granted tokens are valid."""
FAR = 10
"""A limit is far if it leaves room for this many claims of the current size."""
SOON: Micros = SECOND // 50
"""How long until a claim tries again if the token bucket is locked."""


class Grant(msgspec.Struct, frozen=True):
    """Tokens of a queue that a runner may spend until a moment of the server's clock."""

    tokens: int
    until: Micros


class RateRequest(msgspec.Struct, frozen=True):
    """A claim that needs tokens."""

    queue: str
    runner: str
    rate: Rate | None
    """The rate of the queue."""
    grant: Grant | None = None
    claim: int = 0
    """How many jobs the claim asks for."""
    now: Micros = 0
    """The time by the server's clock, as last read."""


class RateResult(msgspec.Struct):
    """Which jobs may start, and what to write."""

    paid: Sequence[Candidate] = ()
    throttled: Mapping[str, Micros] = {}
    """How long each is delayed, by id."""
    token_buckets: Mapping[str, tuple[TokenBucket, Rate]] = {}
    grant: Grant | None = None
    """Tokens left for the next claims."""
    until: Micros | None = None
    """When the spent tokens expire."""
    wait: Micros | None = None
    """How long from `now` until there are tokens for the next job."""
    now: Micros = 0

    def values(self) -> dict[str, Any]:
        """Parameters of the statement `claim_candidates`."""
        token_buckets = self.token_buckets.values()
        return {
            "row_refs": [job.row_ref for job in self.paid],
            "off": list(self.throttled),
            "delays": list(self.throttled.values()),
            "keys": list(self.token_buckets),
            "credits": [token_bucket.credit for token_bucket, _ in token_buckets],
            "periods": [token_bucket.period for token_bucket, _ in token_buckets],
            "fillings": [wait_for(token_bucket, rate, rate.burst) for token_bucket, rate in token_buckets],
            "until": self.until,
        }


@lru_cache(maxsize=1000)
def rate_of(text: str | None) -> Rate | None:
    return None if text is None else parse_rate(text, "rate")


async def lock_queue_token_bucket(db: Db, queue: str, rate: Rate) -> bool:
    """Lock the queue's token bucket; returns whether it was free.

    Comes before the search for candidates: a concurrent claim could otherwise find later jobs and start them first.
    """
    _, token_buckets = await _lock(db, queue, {QUEUE_TOKEN_BUCKET: rate})
    return QUEUE_TOKEN_BUCKET in token_buckets


async def spend_tokens(db: Db, request: RateRequest, jobs: Sequence[Candidate]) -> RateResult:
    """Which of the jobs may start, and what is left in the token buckets."""
    rates = {job.key: rate for job in jobs if job.key is not None and (rate := rate_of(job.key_rate))}
    own = request.rate if request.grant is None else None
    if own is not None:
        rates[QUEUE_TOKEN_BUCKET] = own
    now, token_buckets = await _lock(db, request.queue, rates) if rates else (request.now, {})
    if own is not None and QUEUE_TOKEN_BUCKET not in token_buckets:
        return RateResult(wait=SOON, now=now)
    free = [job for job in jobs if job.key_rate is None or job.key in token_buckets]
    granted = request.grant
    if granted is not None and request.rate is not None:
        # The granted tokens, as a token bucket that is not refilled.
        token_buckets[QUEUE_TOKEN_BUCKET] = TokenBucket(
            granted.tokens * request.rate.period, request.rate.period, now
        )
    queue_token_bucket = token_buckets.pop(QUEUE_TOKEN_BUCKET, None)
    keyed = any(key != QUEUE_TOKEN_BUCKET for key in rates)
    if not keyed and (left := _left_after_all(jobs, request.rate, queue_token_bucket, now)) is not None:
        result = RateResult(paid=jobs, now=now)
        await _spend(db, request, result, left, now)
        return result
    throttled = await _throttled(db, request.queue, [key for key in rates if key != QUEUE_TOKEN_BUCKET])
    decision = check_rates(
        [_start_cost(job) for job in free],
        TokenBuckets(request.rate, queue_token_bucket, token_buckets, throttled),
        now,
    )
    paid = set(decision.allowed)
    result = RateResult(
        paid=[job for job in free if job.id in paid],
        throttled={id_: until - now for id_, until in decision.throttled.items()},
        token_buckets=dict(decision.key_token_buckets),
        wait=None if decision.until is None else decision.until - now,
        now=now,
    )
    if request.rate is not None and decision.queue_token_bucket is not None:
        await _spend(db, request, result, decision.queue_token_bucket, now)
    return result


def _left_after_all(
    jobs: Sequence[Candidate], rate: Rate | None, queue_token_bucket: TokenBucket | None, now: Micros
) -> TokenBucket | None:
    """The queue's token bucket after all jobs have started, if there are enough tokens: the common case."""
    if rate is None or queue_token_bucket is None:
        return None
    left, due = refilled(queue_token_bucket, rate, now), sum(price(job.cost, rate) for job in jobs)
    return spent(left, due) if left.tokens >= due else None


def _start_cost(job: Candidate) -> StartCost:
    rate = None if job.key is None else rate_of(job.key_rate)
    return StartCost((job.sort_priority, job.rank, job.id), job.cost, job.key or "", rate)


async def _spend(db: Db, request: RateRequest, result: RateResult, left: TokenBucket, now: Micros) -> None:
    """Spend granted tokens, or those of the token bucket; if there are plenty, grant some for the next claims."""
    rate, granted = request.rate, request.grant
    if rate is None:
        return
    if granted is not None:
        result.until = granted.until
        result.grant = Grant(left.tokens, granted.until) if left.tokens else None
        return
    tokens = min(left.tokens // 4, rate.tokens * AHEAD // rate.period)
    if tokens >= request.claim > 0 and _is_far(_granted(left, rate, tokens, 0), request):
        ((others,),) = await db.rows("granted", {"queue": request.queue, "runner": request.runner})
        after = _granted(left, rate, tokens, others)
        # With a small burst, a grant would leave too few tokens for other runners.
        if _is_far(after, request):
            left = after
            result.grant = Grant(tokens, now + AHEAD)
            values = {"queue": request.queue, "runner": request.runner, "tokens": tokens, "until": now + AHEAD}
            await db.run("grant", values)
    result.token_buckets = {QUEUE_TOKEN_BUCKET: (left, rate), **result.token_buckets}


def _is_far(token_bucket: TokenBucket, request: RateRequest) -> bool:
    return token_bucket.tokens >= FAR * request.claim


def _granted(token_bucket: TokenBucket, rate: Rate, tokens: int, others: int) -> TokenBucket:
    """The token bucket after a grant.

    Granted tokens may be spent just before they expire, together with all tokens that the bucket has then. So the
    bucket must have room for the grant, for the grants of others, and for the refill until then.
    """
    room = (rate.burst - others - tokens) * rate.period - rate.tokens * AHEAD
    return TokenBucket(min(spent(token_bucket, tokens).credit, room), token_bucket.period, token_bucket.at)


async def _lock(db: Db, queue: str, rates: Mapping[str, Rate]) -> tuple[Micros, dict[str, TokenBucket]]:
    """Lock the token buckets of these keys; returns the time and the buckets, without those locked by others."""
    keys = sorted(rates)
    rows = await db.rows("lock_token_buckets", {"queue": queue, "keys": keys})
    if missing := sorted(set(keys).difference(row[0] for row in rows)):
        new = [full(rates[key], 0) for key in missing]
        credits_, periods = [each.credit for each in new], [each.period for each in new]
        values = {"queue": queue, "keys": missing, "credits": credits_, "periods": periods}
        if await db.run("add_token_buckets", values):
            rows = await db.rows("lock_token_buckets", {"queue": queue, "keys": keys})
    now = rows[0][4] if rows else await db.now()
    return now, {key: TokenBucket(credit, period, at) for key, credit, period, at, _ in rows}


async def _throttled(db: Db, queue: str, keys: Sequence[str]) -> dict[str, list[Throttled]]:
    throttled: dict[str, list[Throttled]] = defaultdict(list)
    if keys:
        for key, *order, until, cost in await db.rows("throttled", {"queue": queue, "keys": list(keys)}):
            throttled[key].append(Throttled(tuple(order), until, cost))
    return throttled
