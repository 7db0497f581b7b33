"""Fairness: how a claim is shared out between tenants who all have jobs waiting.

Each tenant has a moment in virtual time at which its last job ended, if every job took 1/weight. The next job goes to
the tenant whose own would end first. Whoever comes, or comes back, begins at the present of that time: idleness saves
up nothing, a million jobs make no debt.
"""

import heapq
from collections.abc import Iterable, Mapping

import msgspec

LIGHTEST, HEAVIEST = 0.01, 100.0
"""Weights; 1 is what a tenant has of whom nothing was said."""


class Standing(msgspec.Struct):
    """The virtual time of one claimer in one place: the present, and when each tenant's last job ended."""

    present: float = 0.0
    ends: dict[str, float] = {}


def shared_out(standing: Standing, waiting: Iterable[str], weights: Mapping[str, float], jobs: int) -> dict[str, int]:
    """How many of the next jobs are whose, the standing as it was: see `took` for what becomes of it."""
    ends = standing.ends
    line = [
        (max(standing.present, ends.get(tenant, 0.0)) + 1 / weights.get(tenant, 1.0), tenant)
        for tenant in sorted(set(waiting))
    ]
    heapq.heapify(line)
    shares: dict[str, int] = {}
    for _ in range(jobs if line else 0):
        end, tenant = line[0]
        shares[tenant] = shares.get(tenant, 0) + 1
        heapq.heapreplace(line, (end + 1 / weights.get(tenant, 1.0), tenant))
    return shares


def took(
    standing: Standing, taken: Mapping[str, int], weights: Mapping[str, float], waiting: Iterable[str]
) -> Standing:
    """The standing after these tenants got so many jobs; only those who still wait are remembered."""
    still = set(waiting)
    ends = {tenant: standing.ends.get(tenant, 0.0) for tenant in still | set(taken)}
    for tenant, jobs in taken.items():
        ends[tenant] = max(standing.present, ends[tenant]) + jobs / weights.get(tenant, 1.0)
    # The present is where the one who is least far has begun: nobody can be owed more than that.
    behind = [max(standing.present, ends[tenant]) for tenant in still]
    present = min(behind) if behind else max(ends.values(), default=standing.present)
    return Standing(max(standing.present, present), {tenant: ends[tenant] for tenant in still})
