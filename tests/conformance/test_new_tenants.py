"""Tenants of a fair queue come and go between claims: each is in the next claim after it has jobs."""

from collections import Counter

from tests.support.runners import new_runner, rule
from tests.support.seed import enqueue
from windlass.core.jobs.job import Claimed
from windlass.store.contract import Store


def tenants(jobs: list[Claimed]) -> Counter[str | None]:
    return Counter(job.tenant for job in jobs)


async def test_new_tenants_anywhere_among_the_names_are_in_the_next_claim(store: Store) -> None:
    await rule(store, fair=True)
    for tenant in ("b", "d"):
        await enqueue(store, 100, tenant=tenant)
    runner = await new_runner(store)
    await runner.claim(10)
    new_tenants = ["a", "b.1", "b2", "c", "c.1", "d.1", "zz", None]
    for new_tenant in new_tenants:
        await enqueue(store, 5, tenant=new_tenant)
    assert tenants(await runner.claim(10)) == dict.fromkeys(["b", "d", *new_tenants], 1)


async def test_a_tenant_that_had_no_more_jobs_is_in_the_next_claim_once_it_has(store: Store) -> None:
    await rule(store, fair=True)
    for tenant, jobs in (("a", 100), ("b", 3), ("c", 100)):
        await enqueue(store, jobs, tenant=tenant)
    runner = await new_runner(store)
    for _ in range(3):
        await runner.claim(10)
    await enqueue(store, 3, tenant="b")
    assert tenants(await runner.claim(9)) == {"a": 3, "b": 3, "c": 3}
    assert tenants(await runner.claim(4)) == {"a": 2, "c": 2}
