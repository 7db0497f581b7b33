"""Fairness: how a claim is divided between the tenants that have pending jobs, by weighted virtual time.

Each tenant has the virtual time at which its last job ended, where a job takes 1/weight. The next job goes to the
tenant whose next job would end first. A tenant that appears, or appears again, starts at the present: idle time earns
no credit, and earlier jobs leave no debt.
"""

import heapq
from collections.abc import Iterable, Mapping

import msgspec

MIN_WEIGHT, MAX_WEIGHT = 0.01, 100.0
"""The weight of a tenant without one."""


class FairState(msgspec.Struct):
    """The virtual time of one claiming process in one queue, and the virtual end of each tenant's last job.

    No end is before the present; a tenant without an end is at the present.
    """

    present: float = 0.0
    ends: dict[str, float] = {}
    weights: Mapping[str, float] = {}
    """The weights that the ends were computed with."""


def next_tenants(state: FairState, waiting: Iterable[str], weights: Mapping[str, float], jobs: int) -> list[str]:
    """The tenants of the next jobs, in order, if each has enough jobs; new tenants come first among equals."""
    state = with_weights(state, weights)
    ends, present = state.ends, state.present
    steps = {tenant: 1 / weights.get(tenant, 1.0) for tenant in waiting}
    heap = [(ends.get(tenant, present) + step, tenant in ends, tenant) for tenant, step in steps.items()]
    heapq.heapify(heap)
    order: list[str] = []
    while heap and len(order) < jobs:
        end, _, tenant = heap[0]
        order.append(tenant)
        heapq.heapreplace(heap, (end + steps[tenant], True, tenant))
    return order


def after_claim(
    state: FairState, taken: Mapping[str, int], weights: Mapping[str, float], waiting: Iterable[str]
) -> FairState:
    """The state after these tenants got these numbers of jobs; `waiting` are the tenants known to have had pending
    jobs.

    The present becomes the earliest end of the waiting tenants.
    """
    state, waiting = with_weights(state, weights), set(waiting)
    present, before = state.present, state.ends
    ends = {tenant: before.get(tenant, present) for tenant in waiting | taken.keys()}
    for tenant, jobs in taken.items():
        ends[tenant] += jobs / weights.get(tenant, 1.0)
    behind = [ends[tenant] for tenant in waiting]
    present = min(behind) if behind else max(ends.values(), default=present)
    return FairState(present, {tenant: end for tenant, end in ends.items() if end > present}, weights)


def with_weights(state: FairState, weights: Mapping[str, float]) -> FairState:
    """The state under these weights. New weights apply at once: all tenants start again at the present."""
    if state.weights is weights or state.weights == weights:
        return state
    return FairState(state.present, {}, weights)
