"""When a waiting job may start: from what is before it, how fast its queue moves, and the moments that are known.

An estimate, with a range that is meant to hold nine times of ten while things stay as they are; or none, and why not.
"""

import math

import msgspec

from windlass.core.chain import AWAITING
from windlass.core.change import IN_LINE, PARKED
from windlass.core.circumstances import Circumstances, Count, Place
from windlass.core.job import DEFAULT_KEY_LIMIT
from windlass.core.meter import middle
from windlass.core.moments import LATEST, SECOND, Micros, show_duration, to_micros
from windlass.core.rate import price
from windlass.core.status import Status

LATELY: Micros = 300 * SECOND
JUST_NOW: Micros = 30 * SECOND
ENOUGH = 10
"""So many that ended just now tell more than all that ended lately."""
OVERHEAD: Micros = SECOND // 1000
"""What a job costs its worker besides the handler, roughly: no slot is faster than that."""
PROMPT: Micros = 1 * SECOND
"""So long at the most it takes until a free worker sees a job, if nothing goes wrong."""
HAND_OVER: Micros = SECOND // 10
"""From the end of one job of a key to the start of the next in line, with a worker free, as measured."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A moment and the range around it, or what is known instead; `basis` tells from what, or why there is none."""

    start: Micros | None = None
    earliest: Micros | None = None
    latest: Micros | None = None
    basis: str | None = None


class _Span(msgspec.Struct, frozen=True):
    """How long something takes: likely, at the least, at the most; inf: nobody knows."""

    likely: float
    least: float
    most: float
    basis: str

    def times(self, rounds: int) -> "_Span":
        return _Span(self.likely * rounds, self.least * rounds, self.most * rounds, self.basis)

    def plus(self, other: "_Span") -> "_Span":
        basis = "; ".join(dict.fromkeys([*self.basis.split("; "), *other.basis.split("; ")]))
        return _Span(self.likely + other.likely, self.least + other.least, self.most + other.most, basis)


def estimate(facts: Circumstances) -> Estimate:
    """Of a job that waits."""
    if (never := _nobody_can_tell(facts)) is not None:
        return Estimate(basis=never)
    begin = _not_before(facts)
    through = _through_queue(facts)
    if facts.job.status is Status.BLOCKED:
        through = through.plus(_through_line(facts, _in_turn(facts, through)))
    now, tokens = facts.now, _tokens_come(facts)
    least = max(begin, now + through.least, tokens)
    # What is not due yet meets, as far as anybody knows, as many as wait now.
    likely = max(least, begin + through.likely if begin > now else now + through.likely)
    most = max(likely + PROMPT, begin + through.most)
    return Estimate(
        start=_moment(likely), earliest=_moment(least), latest=_moment(most), basis=_basis(facts, through, tokens)
    )


def _nobody_can_tell(facts: Circumstances) -> str | None:
    job, queue = facts.job, facts.queue
    if queue.paused and queue.paused_until is None:
        return f"queue {queue.name} is paused, and nobody has said until when"
    if job.status is Status.BLOCKED and job.reason == AWAITING:
        return "it waits for other jobs to complete"
    if job.status is Status.BLOCKED and job.reason not in (IN_LINE, PARKED):
        return "it waits for something that has no known time"
    if facts.crew.able == 0:
        return "no live worker would take it"
    return None


def _not_before(facts: Circumstances) -> Micros:
    """The last of the moments that are known."""
    job, queue = facts.job, facts.queue
    moments = [facts.now]
    if job.status in (Status.SCHEDULED, Status.FAILED):
        moments.append(to_micros(job.run_at))
    if queue.paused and queue.paused_until is not None:
        moments.append(to_micros(queue.paused_until))
    if job.status is Status.BLOCKED and facts.holders and not facts.place.slots.at_least:
        # A strict one keeps its slot until it is due again, and runs.
        moments.append(min(each.run_at for each in facts.holders))
    return max(moments)


def _through_queue(facts: Circumstances) -> _Span:
    """Until all before it have been taken, and a slot of a worker is free for it."""
    likely, least, most = _ahead(facts)
    free = _free(facts)
    if most < free:
        return _Span(PROMPT / 2, 0, PROMPT, "workers have slots free for it and for all before it")
    lately, just_now = facts.pace.over(facts.now, LATELY), facts.pace.over(facts.now, JUST_NOW)
    if lately.jobs == 0:
        return _Span(math.inf, 0, math.inf, "nothing of its queue ended in the last five minutes")
    told_by = just_now if just_now.jobs >= ENOUGH else lately
    # Of few one cannot tell the rate well: the error goes with the root of their number.
    doubt = (1 + 2 / math.sqrt(told_by.jobs)) * (2 if told_by.guessed else 1)
    basis = f"{told_by.jobs:,} of its queue ended in {show_duration(told_by.time)}"
    rate = told_by.rate
    if told_by.guessed and (capacity := _capacity(facts)):
        rate, basis = (
            capacity,
            f"its queue has just begun: by the slots at work and the usual time of type {facts.job.type}",
        )
    fast = max(rate, lately.rate, facts.pace.best()) * doubt
    slow = min(rate, just_now.rate, lately.rate) / doubt
    return _Span(
        _departures(likely, free) / rate,
        _fewer(_departures(least, free)) / fast,
        _more(_departures(most, free)) / slow if slow else math.inf,
        basis,
    )


def _capacity(facts: Circumstances) -> float:
    """What the slots that are at work in its queue can do, by the microsecond, if all in it is like its type.

    For the first seconds, in which few have ended and nobody knows in how long a time.
    """
    usual, slots = facts.usual, min(facts.place.running.jobs, facts.crew.slots)
    if not usual.count:
        return 0.0
    mean = sum(middle(number) * held for number, held in usual.buckets.items()) / usual.count
    return slots / (mean + slots * OVERHEAD) if slots else 0.0


def _departures(ahead: float, free: int) -> float:
    return max(1.0, ahead + 1 - free)


def _fewer(jobs: float) -> float:
    return max(0.0, jobs - 2 * math.sqrt(jobs))


def _more(jobs: float) -> float:
    return jobs + 2 * math.sqrt(jobs)


def _ahead(facts: Circumstances) -> tuple[float, float, float]:
    """How many start before it: likely, at the least, at the most."""
    place, rules = facts.place, facts.queue.rules
    if not rules.fair:
        return _endless(place.ahead), place.ahead.jobs, _endless(place.ahead)
    mine = facts.job.tenant or ""
    weights = [rules.weights.get(tenant, 1.0) for tenant in {*place.tenants, mine}]
    turns = math.ceil(place.lane.jobs * sum(weights) / rules.weights.get(mine, 1.0)) + len(weights) - 1
    others = min(turns, place.beside.jobs) if not place.beside.at_least else turns
    unknown = _endless_any(place)
    likely = place.sooner.jobs + others + unknown
    return likely, place.sooner.jobs + place.lane.jobs, likely + len(weights)


def _endless(count: Count) -> float:
    return math.inf if count.at_least else count.jobs


def _endless_any(place: Place) -> float:
    return math.inf if place.sooner.at_least or place.lane.at_least else 0.0


def _free(facts: Circumstances) -> int:
    """Slots that wait for work."""
    free, limit = max(0, facts.crew.slots - facts.crew.busy), facts.queue.rules.max_concurrency
    return free if limit is None else max(0, min(free, limit - facts.place.running.jobs))


def _in_turn(facts: Circumstances, through: _Span) -> _Span:
    """What each one before it in the line waits: a free worker is told of the next as soon as the key is free."""
    idle = _ahead(facts)[2] < _free(facts)
    return msgspec.structs.replace(through, likely=HAND_OVER) if idle else through


def _through_line(facts: Circumstances, each_waits: _Span) -> _Span:
    """Until a slot of its key is its own: those before it run in rounds, and each waits in the queue as it will."""
    place, usual = facts.place, facts.usual
    limit = facts.job.key_limit or DEFAULT_KEY_LIMIT
    rounds = (place.line.jobs + min(place.slots.jobs, limit)) // limit
    if rounds == 0:
        return _Span(0, 0, PROMPT, "a slot of its key is free")
    if not usual.count or place.line.at_least:
        why = (
            "too many are in line before it" if place.line.at_least else "nothing of its type ended in the last hour"
        )
        return _Span(math.inf, 0, math.inf, why)
    likely, least, most = (usual.quantile(share) or 0 for share in (0.5, 0.05, 0.95))
    run = _Span(
        likely * rounds, least * (rounds - 1), most * rounds, f"its type takes {show_duration(round(likely))}"
    )
    return run.plus(each_waits.times(rounds - 1))


def _tokens_come(facts: Circumstances) -> float:
    """When the rates let it start at the soonest: those before it pay too, each one token."""
    before = {"queue": _ahead(facts)[1], "key": facts.place.line.jobs}
    waits = [
        ((before[whose] + price(facts.job.rate_cost, rate)) * rate.period - bucket.credit) / rate.tokens
        for whose, rate, bucket in facts.buckets
    ]
    return facts.now + max(0.0, *waits, 0.0)


def _basis(facts: Circumstances, through: _Span, tokens: float) -> str:
    words = through.basis
    if _ahead(facts)[0] == math.inf:
        words += "; more wait before it than are counted"
    if facts.job.status in (Status.SCHEDULED, Status.FAILED):
        words += "; as if as many waited when it is due as wait now"
    if tokens > facts.now + through.likely:
        words += "; its rate limit lets it start no sooner"
    return words


def _moment(micros: float) -> Micros | None:
    return round(micros) if micros < LATEST else None
