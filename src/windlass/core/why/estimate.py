"""When a waiting job may start: from the jobs ahead of it, the throughput of its queue, and known times.

The range is meant to hold nine times of ten while the load stays the same. Without enough facts there is no estimate,
and `basis` says why.
"""

import math

import msgspec

from windlass.core.flow.rate import price
from windlass.core.jobs.change import NO_WORKER, WAITING_FOR_KEY
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT
from windlass.core.jobs.job import DEFAULT_KEY_LIMIT
from windlass.core.moments import MAX_TIME, SECOND, Micros, show_duration, to_micros
from windlass.core.stats.meter import middle
from windlass.core.status import Status
from windlass.core.why.facts import Count, QueuePosition, WhyFacts

LATELY: Micros = 300 * SECOND
JUST_NOW: Micros = 30 * SECOND
ENOUGH = 10
"""With this many attempts ended in the last 30 s, the last five minutes are ignored."""
OVERHEAD: Micros = SECOND // 1000
"""A job's cost for its worker besides the handler, roughly."""
PROMPT: Micros = 1 * SECOND
"""The longest time until a free worker sees a job."""
HAND_OVER: Micros = SECOND // 10
"""Measured time from the end of one job of a key to the start of the next, with a free worker."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A start time and its range; `basis` says what it is computed from, or why there is none."""

    start: Micros | None = None
    earliest: Micros | None = None
    latest: Micros | None = None
    basis: str | None = None


class _Span(msgspec.Struct, frozen=True):
    """A duration: likely, least and most; inf if unknown."""

    likely: float
    least: float
    most: float
    basis: str

    def times(self, rounds: int) -> "_Span":
        return _Span(self.likely * rounds, self.least * rounds, self.most * rounds, self.basis)

    def plus(self, other: "_Span") -> "_Span":
        basis = "; ".join(dict.fromkeys([*self.basis.split("; "), *other.basis.split("; ")]))
        return _Span(self.likely + other.likely, self.least + other.least, self.most + other.most, basis)


def estimate(facts: WhyFacts) -> Estimate:
    """The estimate for a waiting job."""
    if (never := _no_estimate(facts)) is not None:
        return Estimate(basis=never)
    begin = _not_before(facts)
    through = _through_queue(facts)
    if facts.job.status is Status.BLOCKED:
        through = through.plus(_through_key_queue(facts, _in_turn(facts, through)))
    now, tokens = facts.now, _tokens_come(facts)
    least = max(begin, now + through.least, tokens)
    # A job that is not due yet is assumed to find as many jobs ahead as there are now.
    likely = max(least, begin + through.likely if begin > now else now + through.likely)
    most = max(likely + PROMPT, begin + through.most)
    return Estimate(
        start=_moment(likely), earliest=_moment(least), latest=_moment(most), basis=_basis(facts, through, tokens)
    )


def _no_estimate(facts: WhyFacts) -> str | None:
    job, queue = facts.job, facts.queue
    if queue.paused and queue.paused_until is None:
        return f"queue {queue.name} is paused without an end"
    if job.status is Status.BLOCKED and job.reason == WAITING_FOR_PARENT:
        return "it waits for other jobs to complete"
    if job.status is Status.BLOCKED and job.reason not in (WAITING_FOR_KEY, NO_WORKER):
        return "it waits for something that has no known time"
    if facts.workers.able == 0:
        return "no live worker would take it"
    return None


def _not_before(facts: WhyFacts) -> Micros:
    """The latest of the known times before which it cannot start."""
    job, queue = facts.job, facts.queue
    moments = [facts.now]
    if job.status in (Status.SCHEDULED, Status.FAILED):
        moments.append(to_micros(job.run_at))
    if queue.paused and queue.paused_until is not None:
        moments.append(to_micros(queue.paused_until))
    if job.status is Status.BLOCKED and facts.holders and not facts.position.slots.at_least:
        # With strict order a job keeps its key slot until it is due again and runs.
        moments.append(min(each.run_at for each in facts.holders))
    return max(moments)


def _through_queue(facts: WhyFacts) -> _Span:
    """How long until all jobs ahead are claimed and a worker has a free slot."""
    likely, least, most = _ahead(facts)
    free = _free(facts)
    if most < free:
        return _Span(PROMPT / 2, 0, PROMPT, "workers have free slots for it and for all jobs before it")
    lately, just_now = facts.throughput.over(facts.now, LATELY), facts.throughput.over(facts.now, JUST_NOW)
    if lately.jobs == 0:
        return _Span(math.inf, 0, math.inf, "nothing of its queue ended in the last five minutes")
    measured = just_now if just_now.jobs >= ENOUGH else lately
    # The error of a rate falls with the square root of the number of jobs.
    doubt = (1 + 2 / math.sqrt(measured.jobs)) * (2 if measured.guessed else 1)
    basis = f"{measured.jobs:,} of its queue ended in {show_duration(measured.time)}"
    rate = measured.rate
    if measured.guessed and (capacity := _capacity(facts)):
        rate, basis = (
            capacity,
            f"its queue has just started: from its busy slots and the usual duration of type {facts.job.type}",
        )
    fast = max(rate, lately.rate, facts.throughput.best()) * doubt
    slow = min(rate, just_now.rate, lately.rate) / doubt
    return _Span(
        _departures(likely, free) / rate,
        _fewer(_departures(least, free)) / fast,
        _more(_departures(most, free)) / slow if slow else math.inf,
        basis,
    )


def _capacity(facts: WhyFacts) -> float:
    """How many jobs per microsecond the busy slots of its queue can run, if all jobs are like its type.

    Used in the first seconds, when few attempts have ended.
    """
    usual, slots = facts.typical_duration, min(facts.position.running.jobs, facts.workers.slots)
    if not usual.count:
        return 0.0
    mean = sum(middle(number) * held for number, held in usual.bins.items()) / usual.count
    return slots / (mean + slots * OVERHEAD) if slots else 0.0


def _departures(ahead: float, free: int) -> float:
    return max(1.0, ahead + 1 - free)


def _fewer(jobs: float) -> float:
    return max(0.0, jobs - 2 * math.sqrt(jobs))


def _more(jobs: float) -> float:
    return jobs + 2 * math.sqrt(jobs)


def _ahead(facts: WhyFacts) -> tuple[float, float, float]:
    """How many jobs start before it: likely, least, most."""
    position, rules = facts.position, facts.queue.rules
    if not rules.fair:
        return _endless(position.ahead), position.ahead.jobs, _endless(position.ahead)
    mine = facts.job.tenant or ""
    weights = [rules.weights.get(tenant, 1.0) for tenant in {*position.tenants, mine}]
    turns = math.ceil(position.same_tenant.jobs * sum(weights) / rules.weights.get(mine, 1.0)) + len(weights) - 1
    others = min(turns, position.same_priority.jobs) if not position.same_priority.at_least else turns
    unknown = _endless_any(position)
    likely = position.higher_priority.jobs + others + unknown
    return likely, position.higher_priority.jobs + position.same_tenant.jobs, likely + len(weights)


def _endless(count: Count) -> float:
    return math.inf if count.at_least else count.jobs


def _endless_any(position: QueuePosition) -> float:
    return math.inf if position.higher_priority.at_least or position.same_tenant.at_least else 0.0


def _free(facts: WhyFacts) -> int:
    """Free slots of the workers, within the queue's limit."""
    free, limit = max(0, facts.workers.slots - facts.workers.busy), facts.queue.rules.max_concurrency
    return free if limit is None else max(0, min(free, limit - facts.position.running.jobs))


def _in_turn(facts: WhyFacts, through: _Span) -> _Span:
    """How long each job ahead of it for its key waits; a free worker is woken as soon as the key is free."""
    idle = _ahead(facts)[2] < _free(facts)
    return msgspec.structs.replace(through, likely=HAND_OVER) if idle else through


def _through_key_queue(facts: WhyFacts, each_waits: _Span) -> _Span:
    """How long until it has a slot of its key: the jobs ahead run in rounds, and each waits in the queue."""
    position, usual = facts.position, facts.typical_duration
    limit = facts.job.key_limit or DEFAULT_KEY_LIMIT
    rounds = (position.ahead_for_key.jobs + min(position.slots.jobs, limit)) // limit
    if rounds == 0:
        return _Span(0, 0, PROMPT, "a slot of its key is free")
    if not usual.count or position.ahead_for_key.at_least:
        why = (
            "too many jobs wait for its key before it"
            if position.ahead_for_key.at_least
            else "nothing of its type ended in the last hour"
        )
        return _Span(math.inf, 0, math.inf, why)
    likely, least, most = (usual.quantile(share) or 0 for share in (0.5, 0.05, 0.95))
    run = _Span(
        likely * rounds, least * (rounds - 1), most * rounds, f"its type takes {show_duration(round(likely))}"
    )
    return run.plus(each_waits.times(rounds - 1))


def _tokens_come(facts: WhyFacts) -> float:
    """When the rates let it start at the earliest; each job ahead costs one token."""
    before = {"queue": _ahead(facts)[1], "key": facts.position.ahead_for_key.jobs}
    waits = [
        ((before[whose] + price(facts.job.rate_cost, rate)) * rate.period - token_bucket.credit) / rate.tokens
        for whose, rate, token_bucket in facts.token_buckets
    ]
    return facts.now + max(0.0, *waits, 0.0)


def _basis(facts: WhyFacts, through: _Span, tokens: float) -> str:
    words = through.basis
    if _ahead(facts)[0] == math.inf:
        words += "; more jobs wait before it than are counted"
    if facts.job.status in (Status.SCHEDULED, Status.FAILED):
        words += "; assuming that as many jobs wait when it is due as wait now"
    if tokens > facts.now + through.likely:
        words += "; its rate limit lets it start no sooner"
    return words


def _moment(micros: float) -> Micros | None:
    return round(micros) if micros < MAX_TIME else None
