"""The laws of flow control: limits, rates, order of a key, slots that do not leak, shares of tenants."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from tests.support.checker.laws import acknowledged_on
from tests.support.checker.lives import FOREVER, Times
from tests.support.checker.order import Found, Jobs
from tests.support.checker.spans import Rules, Span, by_place, micros, rules, spans
from windlass.core.flow.rate import Rate, parse_rate
from windlass.core.jobs.change import WAITING_FOR_KEY
from windlass.core.status import FINISHED

HOLDS = frozenset({"pending", "running"})
STRICT_HOLDS = HOLDS | {"failed", "scheduled"}
"""Where a job has the slot of its key; one of strict order keeps it until it is over."""


def limit_of_key(job: dict[str, Any]) -> int:
    """How many of its key may run at once, by its own word."""
    return job.get("key_limit") or 1


def too_many(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I11: of a key, and of a queue, there are never more under leases than the limit says."""
    for (_, key), alike in by_place(jobs, lambda job: True).items():
        limit = max(map(limit_of_key, alike))
        yield from _above(limit, [span for job in alike for span in spans(job)], f"key {key!r}")
    for rule in rules(times):
        if rule.max_concurrency is not None:
            held = [span for job in _in(rule, jobs) for span in spans(job)]
            yield from _above(rule.max_concurrency, held, f"queue {rule.queue!r}")


def _above(limit: int, held: Iterable[Span], whose: str) -> Iterator[Found]:
    # At the same microsecond, who ends makes room for who begins.
    lasting = [span for span in held if span.start < span.end]
    events = sorted([(span.start, 1, span.job) for span in lasting] + [(span.end, 0, span.job) for span in lasting])
    running: list[str] = []
    for at, begins, job in events:
        if not begins:
            running.remove(job)
            continue
        running.append(job)
        if len(running) > limit:
            others = ", ".join(running[:-1])
            yield job, f"{whose} has a limit of {limit}, and it was claimed at {at} while {others} ran"


def too_fast(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I12: what starts in any window of time costs no more than the rate brings in it, and the burst."""
    for rule in rules(times):
        if rule.rate is not None:
            yield from _faster(parse_rate(rule.rate, "rate"), _in(rule, jobs), f"queue {rule.queue!r}")
    for (_, key), alike in by_place(jobs, lambda job: bool(job.get("key_rate"))).items():
        yield from _faster(parse_rate(alike[0]["key_rate"], "key_rate"), alike, f"key {key!r}")


def _faster(rate: Rate, alike: Iterable[dict[str, Any]], whose: str) -> Iterator[Found]:
    """A token bucket that leaks at the rate must never run over: the same as counting in every window there is."""
    starts = [(span.start, job.get("rate_cost") or 1, job["id"]) for job in alike for span in spans(job)]
    level, before = 0, 0
    for at, cost, job in sorted(starts):
        level = max(0, level - (at - before) * rate.tokens) + min(cost, rate.burst) * rate.period
        before = at
        if level > rate.burst * rate.period:
            over = level / rate.period - rate.burst
            yield job, f"{whose} may start {rate}, and when this one started it was {over:.3f} too many"


def out_of_order(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I8: of two jobs under a key of strict order, the one that was stored first is over when the other begins."""
    for (_, key), alike in by_place(jobs, lambda job: bool(job.get("key_strict"))).items():
        known = [job for job in alike if _orderly(times, job)]
        known.sort(key=lambda job: times.lives[job["id"]].enqueues[0].invoked)
        for first, second in combinations(known, 2):
            if acknowledged_on(times.lives[first["id"]]) >= times.lives[second["id"]].enqueues[0].invoked:
                continue
            began = min((span.start for span in spans(second)), default=FOREVER)
            # With room for several, the one behind may begin as soon as the one before it has.
            if began < (_over(first) if limit_of_key(first) == 1 else _begun(first)):
                yield second["id"], f"it began before {first['id']}, which is before it under the key {key!r}"


def _orderly(times: Times, job: dict[str, Any]) -> bool:
    """Whether its place is known: enqueued for now, and not moved since."""
    life = times.lives.get(job["id"])
    if life is None or not life.enqueues or life.acted("retry"):
        return False
    return not life.enqueues[0].facts["waits"]


def _begun(job: dict[str, Any]) -> int:
    return min((span.start for span in spans(job)), default=_over(job))


def _over(job: dict[str, Any]) -> int:
    return micros(job.get("finished_at")) if job["status"] in FINISHED else FOREVER


def left_waiting(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I15: in the end no job waits for a key that is free."""
    for (_, key), alike in by_place(jobs, lambda job: True).items():
        line = [job for job in alike if job["status"] == "blocked" and job.get("reason") == WAITING_FOR_KEY]
        held = sum(1 for job in alike if job["status"] in (STRICT_HOLDS if _keeps(job) else HOLDS))
        for job in line[: max(0, min(map(limit_of_key, line), default=0) - held)]:
            yield job["id"], f"it waits for the key {key!r}, which is free"


def _keeps(job: dict[str, Any]) -> bool:
    # One that was never begun has no slot yet, strict or not.
    return bool(job.get("key_strict")) and job.get("attempt", 0) > 0


def unfair(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I18: while two tenants both have much waiting, starts come to them by their weights."""
    for rule in rules(times):
        if rule.fair:
            alike: dict[int, list[dict[str, Any]]] = defaultdict(list)
            for job in _in(rule, jobs):
                alike[job.get("priority", 0)].append(job)
            for level in alike.values():
                yield from _uneven(rule, level)


def _uneven(rule: Rules, alike: list[dict[str, Any]]) -> Iterator[Found]:
    tenants = sorted({_tenant(job) for job in alike})
    waiting, since = Counter[str](), {pair: Counter[str]() for pair in combinations(tenants, 2)}
    for batch in _moments(alike):
        deep = {tenant for tenant in tenants if waiting[tenant] >= rule.deep}
        for tenant, (came, taken, begun) in batch.items():
            waiting[tenant] += came - taken
            for pair, starts in since.items():
                starts[tenant] += begun if tenant in pair else 0
        # One claim may have taken all that a tenant had: then it could not give more.
        deep &= {tenant for tenant in tenants if waiting[tenant] >= rule.deep}
        for pair, starts in since.items():
            if not deep.issuperset(pair):
                starts.clear()
                continue
            one, other = (starts[tenant] / rule.weights.get(tenant, 1.0) for tenant in pair)
            leeway = rule.claimers * sum(1 / rule.weights.get(tenant, 1.0) for tenant in pair)
            if abs(one - other) > leeway:
                yield None, f"queue {rule.queue!r}: {dict(starts)} started by weights {rule.weights}"
                return


def _moments(alike: list[dict[str, Any]]) -> Iterator[dict[str, list[int]]]:
    """What happened at each moment, in order: of each tenant, what came, what waits no more, what began."""
    found: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))
    for job in alike:
        began = sorted(span.start for span in spans(job))
        found[micros(job["created_at"])][_tenant(job)][0] += 1
        gone = began[0] if began else _over(job)
        found[gone][_tenant(job)][1] += 1
        for start in began:
            found[start][_tenant(job)][2] += 1
    for _, batch in sorted(found.items()):
        yield batch


def _tenant(job: dict[str, Any]) -> str:
    return job.get("tenant") or ""


def _in(rule: Rules, jobs: Jobs) -> list[dict[str, Any]]:
    return [job for job in jobs.values() if job.get("queue") == rule.queue]


FLOW: list[tuple[str, Callable[[Times, Jobs, Mapping[str, int]], Iterator[Found]]]] = [
    ("I8", out_of_order),
    ("I11", too_many),
    ("I12", too_fast),
    ("I15", left_waiting),
    ("I18", unfair),
]
