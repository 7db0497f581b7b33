"""A claim of a fair queue lists tenants without a look at what known ones left behind: by the pages that are read."""

from typing import Any

from tests.postgres.other import Other
from tests.postgres.test_key_queue_pages import _pages
from tests.support.clock import ManualClock
from tests.support.runners import new_runner, rule
from tests.support.seed import completed, enqueue
from windlass.store.contract import Store
from windlass.store.postgres.limits.fairness import BEYOND, NEXT

TENANTS = ["a", "b", "c"]
JOBS = 600


async def test_a_list_does_not_walk_past_the_ended_jobs_of_known_tenants(
    store: Store, clock: ManualClock, other: Other, connection: Any
) -> None:
    await rule(store, fair=True)
    for tenant in TENANTS:
        await enqueue(store, JOBS, tenant=tenant)
    runner = await new_runner(store)
    await other.does("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    await other.does("SELECT 1")  # from here on it holds its snapshot
    for _ in range(5):
        jobs = await runner.claim(300)
        await store.jobs.settle([completed(job, None) for job in jobs])
    values = {"queue": "default", "sort_priority": 0, "limit": 200, "now": clock.wall()}
    whole = await _pages(connection, "tenants", {**values, "from": ""})
    gaps = {"starts": ["", *(name + NEXT for name in TENANTS)], "ends": [*TENANTS, BEYOND]}
    others = await _pages(connection, "other_tenants", {**values, **gaps})
    assert others * 3 < whole, (others, whole)
