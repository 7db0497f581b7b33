"""The limits of queues: settings, token buckets, and what this process remembers between its claims."""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from windlass.core.flow.fairness import FairState
from windlass.core.flow.queue import QueueSettings, merge
from windlass.core.flow.rate import Rate, TokenBucket, full, parse_rate, ready_at, refilled
from windlass.core.flow.rate_check import RateDecision, StartCost, Throttled, TokenBuckets, check_rates
from windlass.core.moments import SECOND, Micros
from windlass.store.clock import Clock
from windlass.store.sqlite.db import Db, array

OF_QUEUE = ""
"""The key of a queue's own token bucket."""
MAX_EXHAUSTED: Micros = SECOND
"""A queue counts as exhausted for at most this long: then a cheaper job may have come."""
MAX_REMEMBERED_TURNS = 1000

_settings = msgspec.json.Decoder(QueueSettings)


class QueueLimits(msgspec.Struct, frozen=True):
    """The settings of one queue that concern its claims."""

    paused: bool
    max_concurrency: int | None
    rate: Rate | None
    fair: bool
    rated: bool
    """Whether the queue has, or had, jobs whose key has a rate."""
    weights: dict[str, float]

    @property
    def plain(self) -> bool:
        """Whether only the number of running jobs is limited, so that the statement `claim` is enough."""
        return self.rate is None and not self.fair and not self.rated


def limits_of(db: Db, now: Micros) -> dict[str, QueueLimits]:
    """The limits of the queues that are limited or paused, from a small table."""
    return {row[0]: _limits(*row[1:]) for row in db.rows("queue_limits", {"now": now})}


@lru_cache(maxsize=1000)
def _limits(
    paused: int,
    max_concurrency: int | None,
    rate: str | None,
    fair: int,
    rated: int,
    declared: str | None,
    changed: str | None,
) -> QueueLimits:
    weights = merge(_settings.decode(declared), _settings.decode(changed)).weights if declared and changed else {}
    return QueueLimits(bool(paused), max_concurrency, _rate(rate), bool(fair), bool(rated), weights)


@lru_cache(maxsize=1000)
def _rate(text: str | None) -> Rate | None:
    return None if text is None else parse_rate(text, "rate")


def to_cost(row: Sequence[Any]) -> StartCost:
    """The StartCost of a row: sort_priority, rank, id, cost, key, and the rate of the key."""
    sort_priority, rank, id_, cost, key, rate = row
    return StartCost((sort_priority, rank, id_), cost, key, _rate(rate))


def spend_tokens(db: Db, queue: str, rate: Rate | None, costs: Sequence[StartCost], now: Micros) -> RateDecision:
    """Spend the tokens of the jobs that may start, and throttle the others; returns which is which.

    `now` is recorded as the time of their start: tokens that come later do not count.
    """
    keys = sorted({cost.key for cost in costs if cost.rate is not None})
    wanted = keys if rate is None else [OF_QUEUE, *keys]
    token_buckets = _token_buckets(db, queue, wanted) if wanted else {}
    throttled: dict[str, list[Throttled]] = defaultdict(list)
    if keys:
        for key, *position, until, cost in db.rows("throttled", {"queue": queue, "keys": array(keys)}):
            throttled[key].append(Throttled(tuple(position), until, cost))
    decision = check_rates(
        costs, TokenBuckets(rate, token_buckets.pop(OF_QUEUE, None), token_buckets, throttled), now
    )
    spent = list(decision.key_token_buckets.items())
    if rate is not None and decision.queue_token_bucket is not None:
        spent.append((OF_QUEUE, (decision.queue_token_bucket, rate)))
    if spent:
        db.run_many("set_token_bucket", [_token_bucket_row(queue, key, *each) for key, each in spent])
    if decision.throttled:
        db.run_many(
            "throttle", [{"id": id_, "until": until, "now": now} for id_, until in decision.throttled.items()]
        )
    return decision


def queue_token_bucket(db: Db, queue: str, rate: Rate) -> TokenBucket:
    """The queue's own token bucket, refilled until now."""
    now = db.now
    return refilled(_token_buckets(db, queue, [OF_QUEUE]).get(OF_QUEUE) or full(rate, now), rate, now)


def _token_buckets(db: Db, queue: str, keys: Sequence[str]) -> dict[str, TokenBucket]:
    rows = db.rows("token_buckets", {"queue": queue, "keys": array(keys)})
    return {key: TokenBucket(credit, period, at) for key, credit, period, at in rows}


def _token_bucket_row(
    queue: str, key: str, token_bucket: TokenBucket, rate: Rate
) -> tuple[str, str, int, int, Micros, Micros]:
    return (
        queue,
        key,
        token_bucket.credit,
        token_bucket.period,
        token_bucket.at,
        ready_at(token_bucket, rate, rate.burst),
    )


class TenantTurns(msgspec.Struct):
    """The fairness state at one priority of a queue."""

    state: FairState = msgspec.field(default_factory=FairState)
    after: str = ""
    """The last tenant that was listed; empty: all were."""


class ClaimMemory:
    """What one process remembers between its claims: fairness states and exhausted queues.

    Only a cache: without it, all tenants are equal at first, and a claim from an exhausted queue finds nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turns: dict[tuple[str, int], TenantTurns] = {}
        self._exhausted: dict[str, tuple[Micros, QueueLimits]] = {}

    def turns(self, queue: str, sort_priority: int) -> TenantTurns:
        """The fairness state at one priority of a queue."""
        if len(self._turns) > MAX_REMEMBERED_TURNS:
            self._turns.clear()
        return self._turns.setdefault((queue, sort_priority), TenantTurns())

    def set_exhausted(self, queue: str, until: Micros, limits: QueueLimits) -> None:
        """Record that a claim would get nothing until then, unless the limits change."""
        self._exhausted[queue] = min(until, self._clock.wall() + MAX_EXHAUSTED), limits

    def is_exhausted(self, queue: str, limits: QueueLimits) -> bool:
        """Whether a claim would get nothing now."""
        until, found = self._exhausted.get(queue, (0, None))
        return found == limits and self._is_ahead(until)

    def next_ready_in(self) -> Micros | None:
        """How long until the first exhausted queue may give jobs again; None: no queue is exhausted."""
        for queue, (until, _) in list(self._exhausted.items()):
            if not self._is_ahead(until):
                self._exhausted.pop(queue, None)
        now = self._clock.wall()
        return min((max(0, until - now) for until, _ in list(self._exhausted.values())), default=None)

    def _is_ahead(self, until: Micros) -> bool:
        """Whether this is in the future, by at most MAX_EXHAUSTED; later means that the clock was set back."""
        return 0 < until - self._clock.wall() <= MAX_EXHAUSTED
