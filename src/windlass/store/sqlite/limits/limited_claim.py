"""Claims from queues with a concurrency limit, a rate, or fairness between tenants."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from windlass.core.flow.fairness import after_claim, next_tenants
from windlass.core.flow.rate_check import StartCost
from windlass.core.ids import JobId
from windlass.core.jobs.job import MAX_PRIORITY
from windlass.core.moments import Micros
from windlass.store.records import ClaimRequest
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.limits.limits import (
    ClaimMemory,
    QueueLimits,
    TenantTurns,
    queue_token_bucket,
    spend_tokens,
    to_cost,
)

T = TypeVar("T")

MIN_CLAIMS_LEFT = 10
"""A limit is near if it leaves room for fewer claims of this size: then jobs are claimed for free slots only."""
FULL_RUNNER_PAUSE: Micros = 20_000
"""How long a queue counts as exhausted for a runner without a free slot, while a limit is near."""
MAX_THROTTLED = 1000
"""A claim ends after it has throttled this many jobs."""
MAX_TENANTS_LISTED = 200
"""Tenants listed by one claim; the next claim continues after the last of them."""
AFTER_NAME = "\x01"
"""A tenant's name with this suffix is the next possible name, because no name has a zero byte."""


class LimitedClaim:
    """The part of a claim for one queue, under the queue's limits."""

    def __init__(self, db: Db, values: dict[str, Any], limits: QueueLimits, memory: ClaimMemory) -> None:
        """`values` are the parameters of the statement `claim`."""
        self.db = db
        self.values = values
        self.limits = limits
        self.memory = memory
        self.queue: str = values["queue"]
        self.room: int = values["limit"]
        """How many more jobs may start."""
        self.taken: list[JobId] = []
        self._throttled = 0

    def apply_limits(self, request: ClaimRequest, taken: int) -> int:
        """Reduce `room` to what the limits allow and, near a limit, to the runner's free slots; returns it.

        `taken` is the number of jobs claimed from other queues.
        """
        near = False
        if self.limits.max_concurrency is not None:
            ((running,),) = self.db.rows("count_running", {"queue": self.queue})
            room = max(0, self.limits.max_concurrency - running)
            near = room < MIN_CLAIMS_LEFT * request.limit
            self.room = min(self.room, room)
        if self.limits.rate is not None:
            tokens = queue_token_bucket(self.db, self.queue, self.limits.rate).tokens
            near = near or tokens < MIN_CLAIMS_LEFT * request.limit
            # Without tokens, try one job all the same: the rate check then says when there are enough.
            self.room = min(self.room, max(1, tokens))
        if near and request.free is not None and self.room > request.free - taken:
            self.room = max(0, request.free - taken)
            if not self.room:
                self.memory.set_exhausted(self.queue, self.values["now"] + FULL_RUNNER_PAUSE, self.limits)
        return self.room

    def take_in_order(self) -> None:
        """Start jobs in the order of the queue while there are tokens."""
        more = True
        while more and self.room:
            listed = self.db.json("start_costs", self.values | {"limit": self.room})
            more = len(listed) == self.room
            self.take_affordable([to_cost(row) for row in listed])

    def take_affordable(self, costs: Sequence[StartCost]) -> set[JobId]:
        """Start the jobs for which there are tokens; returns them. Without tokens of the queue, ends the claim."""
        if self.limits.rate is None and not any(cost.rate for cost in costs):
            return self.take([cost.id for cost in costs])
        decision = spend_tokens(self.db, self.queue, self.limits.rate, costs, self.values["now"])
        started = self.take(decision.allowed)
        self._throttled += len(decision.throttled)
        if decision.until is not None:
            self.memory.set_exhausted(self.queue, decision.until, self.limits)
        if decision.until is not None or self._throttled >= MAX_THROTTLED:
            self.room = 0
        return started

    @property
    def needs_no_tokens(self) -> bool:
        """Whether neither the queue nor any key has a rate."""
        return self.limits.rate is None and not self.limits.rated

    def take(self, ids: Sequence[JobId]) -> set[JobId]:
        """Start these jobs; returns them."""
        if ids:
            self.db.run("take_jobs", self.values | {"ids": array(ids)})
            self.taken += ids
            self.room -= len(ids)
        return set(ids)


def take_fairly(claim: LimitedClaim) -> None:
    """Start jobs priority by priority; in each, the tenants take turns by their weights."""
    after = -MAX_PRIORITY - 1
    while claim.room and (rows := claim.db.rows("next_fair_priority", {"queue": claim.queue, "after": after})):
        after = rows[0][0]
        _take_turns(claim, after)
    if claim.room:
        # Last come jobs without a tenant queue, because the queue became fair only now.
        claim.take_in_order()


def _take_turns(claim: LimitedClaim, sort_priority: int) -> None:
    """Take jobs of one priority until the claim is full or all tenants are listed."""
    turns = claim.memory.turns(claim.queue, sort_priority)
    seen: set[str] = set()
    while claim.room:
        fresh = _list_tenants(claim, sort_priority, turns) - seen
        if not fresh:
            return
        seen |= fresh
        _take_from(claim, sort_priority, turns, fresh)


def _take_from(claim: LimitedClaim, sort_priority: int, turns: TenantTurns, tenants: set[str]) -> None:
    weights, taken, remaining = claim.limits.weights, Counter[str](), set(tenants)
    state = turns.state
    while claim.room and remaining:
        before = after_claim(state, taken, weights, remaining) if taken else state
        order = next_tenants(before, remaining, weights, claim.room)
        started, empty = _start(claim, sort_priority, order)
        taken.update(started)
        remaining -= empty
        if empty.issuperset(order) and not started:
            break
    known = {tenant for tenant in state.ends if tenant not in tenants}
    turns.state = after_claim(state, taken, weights, remaining | known)


def _start(claim: LimitedClaim, sort_priority: int, order: Sequence[str]) -> tuple[Counter[str], set[str]]:
    """Start jobs in this order of tenants; returns how many of each, and the tenants without more for this runner."""
    jobs = Counter(order)
    if claim.needs_no_tokens:
        heads = _heads(claim, sort_priority, jobs)
        ids = _in_turn(order, heads)
        claim.take([id_ for _, id_ in ids])
        return Counter(tenant for tenant, _ in ids), {tenant for tenant, n in jobs.items() if len(heads[tenant]) < n}
    costs = _costs(claim, sort_priority, jobs)
    wanted = _in_turn(order, costs)
    started = claim.take_affordable([cost for _, cost in wanted])
    begun = Counter(tenant for tenant, cost in wanted if cost.id in started)
    return begun, {tenant for tenant, n in jobs.items() if len(costs[tenant]) < n}


def _in_turn(order: Sequence[str], by_tenant: Mapping[str, Sequence[T]]) -> list[tuple[str, T]]:
    """The items in this order of tenants, each the next of its tenant; a tenant without more is skipped."""
    following = {tenant: iter(own) for tenant, own in by_tenant.items()}
    turns = ((tenant, next(following[tenant], None)) for tenant in order if tenant in following)
    return [(tenant, each) for tenant, each in turns if each is not None]


def _heads(claim: LimitedClaim, sort_priority: int, jobs: Counter[str]) -> dict[str, list[JobId]]:
    most = max(jobs.values())
    values = claim.values | {"sort_priority": sort_priority, "tenant_queues": array(jobs), "max_jobs": most}
    return {tenant: (ids or [])[: jobs[tenant]] for tenant, ids in claim.db.json("tenant_heads", values)}


def _costs(claim: LimitedClaim, sort_priority: int, jobs: Counter[str]) -> dict[str, list[StartCost]]:
    values = claim.values | {"sort_priority": sort_priority, "jobs_by_tenant": array(jobs.items())}
    costs: dict[str, list[StartCost]] = defaultdict(list)
    for tenant, row in claim.db.json("tenant_costs", values):
        costs[tenant].append(to_cost(row))
    return costs


def _list_tenants(claim: LimitedClaim, sort_priority: int, turns: TenantTurns) -> set[str]:
    """The next tenants with pending jobs, after the last listed one, wrapping round at the end."""
    limit, start = max(MAX_TENANTS_LISTED, claim.room), turns.after + AFTER_NAME if turns.after else ""
    values = {"queue": claim.queue, "sort_priority": sort_priority, "until": None}
    listed = claim.db.json("tenant_queues", values | {"from": start, "limit": limit})
    wrapped = bool(start) and len(listed) < limit
    if wrapped:
        listed += claim.db.json("tenant_queues", values | {"from": "", "until": start, "limit": limit - len(listed)})
    last = turns.after = listed[-1] if len(listed) == limit else ""
    # A known tenant that the listing covers but does not have has no pending jobs: forget it.
    found, ends = set(listed), turns.state.ends
    turns.state.ends = {
        tenant: end
        for tenant, end in ends.items()
        if tenant in found or not _is_covered(tenant, start, last, wrapped)
    }
    return found


def _is_covered(tenant: str, start: str, last: str, wrapped: bool) -> bool:
    """Whether a listing from `start` to `last`, or to the end if `last` is empty, covers this tenant."""
    if not last:
        return True
    return tenant >= start or tenant <= last if wrapped else start <= tenant <= last
