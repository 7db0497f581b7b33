"""Fairness: how a claim is shared out between tenants who all have jobs waiting.

Each tenant has a moment in virtual time at which its last job ended, if every job took 1/weight. The next job goes to
the tenant whose own would end first. Whoever comes, or comes back, begins at the present of that time: idleness saves
up nothing, a million jobs make no debt.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

LIGHTEST, HEAVIEST = 0.01, 100.0
"""Weights; 1 is what a tenant has of whom nothing was said."""


class Standing(msgspec.Struct):
    """The virtual time of one claimer in one place: the present, and when each tenant's last job ended.

    Nobody's is before the present; who is not named stands there. `weights` are those by which it was reckoned.
    """

    present: float = 0.0
    ends: dict[str, float] = {}
    weights: Mapping[str, float] = {}


def turns(standing: Standing, waiting: Iterable[str], weights: Mapping[str, float], jobs: int) -> list[str]:
    """Whose the next jobs are, one after the other, if all of them have enough; newcomers first among equals."""
    standing = reweighted(standing, weights)
    ends, present = standing.ends, standing.present
    steps = {tenant: 1 / weights.get(tenant, 1.0) for tenant in waiting}
    line = [(ends.get(tenant, present) + step, tenant in ends, tenant) for tenant, step in steps.items()]
    heapq.heapify(line)
    order: list[str] = []
    while line and len(order) < jobs:
        end, _, tenant = line[0]
        order.append(tenant)
        heapq.heapreplace(line, (end + steps[tenant], True, tenant))
    return order


def shared_out(standing: Standing, waiting: Iterable[str], weights: Mapping[str, float], jobs: int) -> dict[str, int]:
    """How many of the next jobs are whose, the standing as it was: see `took` for what becomes of it."""
    return dict(Counter(turns(standing, waiting, weights, jobs)))


def took(
    standing: Standing, taken: Mapping[str, int], weights: Mapping[str, float], waiting: Iterable[str]
) -> Standing:
    """The standing after these tenants got so many jobs; `waiting` are those who had some, as far as is known.

    The present is where the one of them who is least far stands: nobody can be owed more than that.
    """
    standing, waiting = reweighted(standing, weights), set(waiting)
    present, before = standing.present, standing.ends
    ends = {tenant: before.get(tenant, present) for tenant in waiting | taken.keys()}
    for tenant, jobs in taken.items():
        ends[tenant] += jobs / weights.get(tenant, 1.0)
    behind = [ends[tenant] for tenant in waiting]
    present = min(behind) if behind else max(ends.values(), default=present)
    return Standing(present, {tenant: end for tenant, end in ends.items() if end > present}, weights)


def reweighted(standing: Standing, weights: Mapping[str, float]) -> Standing:
    """The standing under these weights. If they are others than before, everybody begins anew: they hold at once."""
    if standing.weights is weights or standing.weights == weights:
        return standing
    return Standing(standing.present, {}, weights)
