"""Rate limits: which of the next jobs may start by the rates of their queue and of their concurrency keys.

Jobs are checked in claim order and none overtakes another. Where the queue's token bucket is empty, all later jobs
wait. Where only a key's token bucket is empty, the job is throttled until the token bucket has its tokens, and so
are later jobs of the key.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.core.flow.rate import Rate, TokenBucket, full, price, ready_at, refilled, spent
from windlass.core.ids import JobId
from windlass.core.moments import Micros

THROTTLED = "rate limit of its key"
"""The reason of a scheduled job that waits for tokens of its key."""


JobOrder = tuple[int, Micros, JobId]
"""The claim order of a job: sort_priority, rank, id."""


class StartCost(msgspec.Struct, frozen=True, gc=False):
    """The tokens that a job needs to start."""

    order: JobOrder
    cost: int = 1
    key: str = ""
    rate: Rate | None = None
    """The rate of the job's key."""

    @property
    def id(self) -> JobId:
        """The job's id."""
        return self.order[2]


class Throttled(msgspec.Struct, frozen=True, gc=False, order=True):
    """A job that was throttled before, and the tokens of its key that it needs."""

    order: JobOrder
    until: Micros
    cost: int = 1


class RateDecision(msgspec.Struct):
    """The jobs that start, the throttled ones with their times, and the token buckets that were spent from."""

    allowed: list[JobId] = []
    throttled: dict[JobId, Micros] = {}
    queue_token_bucket: TokenBucket | None = None
    key_token_buckets: dict[str, tuple[TokenBucket, Rate]] = {}
    until: Micros | None = None
    """When the queue has the tokens of the first job that it refused; None: it refused none."""


class TokenBuckets(msgspec.Struct):
    """The token buckets of the queue and of its keys (missing: full), and the throttled jobs by key."""

    rate: Rate | None
    queue_token_bucket: TokenBucket | None
    key_token_buckets: Mapping[str, TokenBucket] = {}
    throttled: Mapping[str, Sequence[Throttled]] = {}


def check_rates(costs: Iterable[StartCost], token_buckets: TokenBuckets, now: Micros) -> RateDecision:
    """Spend tokens for the jobs in their order, until the queue's token bucket cannot pay for one."""
    decision = RateDecision()
    rate = token_buckets.rate
    token_bucket = None if rate is None else refilled(token_buckets.queue_token_bucket or full(rate, now), rate, now)
    keys: dict[str, _KeyBudget] = {}
    for each in costs:
        if each.rate is not None:
            if each.key not in keys:
                keys[each.key] = _key_budget(each.key, each.rate, token_buckets, now)
            if (until := keys[each.key].throttled_until(each, each.rate)) is not None:
                decision.throttled[each.id] = until
                continue
        if token_bucket is not None and rate is not None:
            tokens = price(each.cost, rate)
            if token_bucket.tokens < tokens:
                decision.until = ready_at(token_bucket, rate, tokens)
                break
            token_bucket = decision.queue_token_bucket = spent(token_bucket, tokens)
        if each.rate is not None:
            decision.key_token_buckets[each.key] = keys[each.key].spend(each, each.rate), each.rate
        decision.allowed.append(each.id)
    return decision


class _KeyBudget(msgspec.Struct):
    """The tokens of a key, now and after the jobs that are throttled already."""

    now: TokenBucket
    earlier: list[Throttled]
    """Throttled jobs that follow the current job, in claim order."""
    later: TokenBucket | None = None
    """The token bucket after the throttled jobs before the current job; None: there are none."""

    def throttled_until(self, job: StartCost, rate: Rate) -> Micros | None:
        """When the job may start; None: now. It never starts before an earlier throttled job."""
        tokens = price(job.cost, rate)
        while self.earlier and self.earlier[0].order < job.order:
            before = self.earlier.pop(0)
            self._reserve(before.until, price(before.cost, rate), rate)
        if self.later is None and refilled(self.now, rate, self.now.at).tokens >= tokens:
            return None
        return self._reserve(0, tokens, rate)

    def spend(self, job: StartCost, rate: Rate) -> TokenBucket:
        """The token bucket after the job has started."""
        self.now = spent(refilled(self.now, rate, self.now.at), price(job.cost, rate))
        return self.now

    def _reserve(self, earliest: Micros, tokens: int, rate: Rate) -> Micros:
        token_bucket = refilled(self.later or self.now, rate, (self.later or self.now).at)
        until = max(earliest, ready_at(token_bucket, rate, tokens))
        self.later = spent(refilled(token_bucket, rate, until), tokens)
        return until


def _key_budget(key: str, rate: Rate, token_buckets: TokenBuckets, now: Micros) -> _KeyBudget:
    token_bucket = refilled(token_buckets.key_token_buckets.get(key) or full(rate, now), rate, now)
    return _KeyBudget(token_bucket, sorted(token_buckets.throttled.get(key, ())))
