"""Fair queues: tenants share what is claimed by their weights, whatever their backlogs."""

from collections import Counter

from tests.support.clock import ManualClock
from tests.support.runners import new_runner, rule
from tests.support.seed import (
    WAIT,
    cancelled,
    enqueue,
    enqueue_one,
    failed,
    look,
    put,
    requeued,
    settle,
    worker_info,
)
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import parse_rate
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Claimed
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store

MANY = 2000


def tenants(jobs: list[Claimed]) -> Counter[str | None]:
    return Counter(job.tenant for job in jobs)


async def test_the_first_job_of_a_new_tenant_is_in_the_next_claim(store: Store) -> None:
    await rule(store, fair=True)
    await enqueue(store, MANY, tenant="a")
    runner = await new_runner(store)
    await runner.claim(50)
    first = await enqueue_one(store, tenant="b")
    assert first in [job.id for job in await runner.claim(2)]


async def test_tenants_share_evenly_whatever_their_backlogs(store: Store) -> None:
    await rule(store, fair=True)
    for tenant, backlog in (("a", MANY), ("b", 300), ("c", 100)):
        await enqueue(store, backlog, tenant=tenant)
    runner = await new_runner(store)
    jobs = [job for _ in range(9) for job in await runner.claim(10)]
    assert tenants(jobs) == {"a": 30, "b": 30, "c": 30}


async def test_what_is_claimed_is_in_the_order_of_turns(store: Store) -> None:
    await rule(store, fair=True)
    await enqueue(store, 50, tenant="a")
    await enqueue(store, 50, tenant="b")
    runner = await new_runner(store)
    jobs = await runner.claim(20)
    assert all(tenants(jobs[i : i + 2]) == {"a": 1, "b": 1} for i in range(0, 20, 2))


async def test_one_tenants_jobs_keep_their_order(store: Store, clock: ManualClock) -> None:
    await rule(store, fair=True)
    ids = []
    for _ in range(6):
        ids.append(await enqueue_one(store, tenant="a"))
        await enqueue_one(store, tenant="b")
        clock.advance(1)
    runner = await new_runner(store)
    jobs = [job for _ in range(4) for job in await runner.claim(3)]
    assert [job.id for job in jobs if job.tenant == "a"] == ids


async def test_claims_of_one_job_share_evenly_too(store: Store) -> None:
    await rule(store, fair=True)
    for tenant in "abcd":
        await enqueue(store, 10, tenant=tenant)
    runner = await new_runner(store)
    jobs = [job for _ in range(20) for job in await runner.claim(1)]
    assert set(tenants(jobs).values()) == {5}


async def test_a_tenant_without_more_jobs_leaves_the_rest_to_the_others(store: Store) -> None:
    await rule(store, fair=True)
    await enqueue(store, 3, tenant="a")
    await enqueue(store, 50, tenant="b")
    runner = await new_runner(store)
    assert tenants(await runner.claim(40)) == {"a": 3, "b": 37}


async def test_shares_are_by_weight(store: Store) -> None:
    await rule(store, fair=True, weights={"a": 3.0})
    await enqueue(store, 400, tenant="a")
    await enqueue(store, 400, tenant="b")
    runner = await new_runner(store)
    assert tenants([job for _ in range(20) for job in await runner.claim(20)]) == {"a": 300, "b": 100}


async def test_shares_of_single_claims_are_by_weight(store: Store) -> None:
    await rule(store, fair=True, weights={"a": 3.0})
    await enqueue(store, 100, tenant="a")
    await enqueue(store, 100, tenant="b")
    runner = await new_runner(store)
    assert tenants([job for _ in range(80) for job in await runner.claim(1)]) == {"a": 60, "b": 20}


async def test_weights_that_change_hold_at_once(store: Store) -> None:
    await rule(store, fair=True, weights={"a": 0.01})
    await enqueue(store, 500, tenant="a")
    await enqueue(store, 500, tenant="b")
    runner = await new_runner(store)
    assert tenants(await runner.claim(50))["b"] >= 49
    await rule(store, fair=True, weights={"a": 4.0})
    got = tenants([job for _ in range(10) for job in await runner.claim(10)])
    assert 79 <= got["a"] <= 81


async def test_an_idle_tenant_saves_up_nothing(store: Store) -> None:
    await rule(store, fair=True)
    await enqueue(store, 10, tenant="a")
    await enqueue(store, MANY, tenant="b")
    runner = await new_runner(store)
    for _ in range(10):
        await runner.claim(50)
    await enqueue(store, 500, tenant="a")
    assert tenants(await runner.claim(40)) == {"a": 20, "b": 20}


async def test_a_cancelled_backlog_leaves_no_debt(store: Store) -> None:
    await rule(store, fair=True)
    ids = await enqueue(store, 500, tenant="a")
    runner = await new_runner(store)
    taken = {job.id for job in await runner.claim(100)}
    await store.operator.cancel([id_ for id_ in ids if id_ not in taken], "unwanted")
    await enqueue(store, 100, tenant="b")
    await enqueue(store, 100, tenant="a")
    assert tenants(await runner.claim(20)) == {"a": 10, "b": 10}


async def test_jobs_without_a_tenant_are_one_tenant_of_their_own(store: Store) -> None:
    await rule(store, fair=True)
    await enqueue(store, 100)
    await enqueue(store, 100, tenant="a")
    runner = await new_runner(store)
    assert tenants(await runner.claim(20)) == {None: 10, "a": 10}


async def test_priority_comes_before_fairness(store: Store) -> None:
    await rule(store, fair=True)
    await enqueue(store, 20, tenant="a", priority=5)
    await enqueue(store, 20, tenant="b")
    await enqueue(store, 20, tenant="c", priority=5)
    runner = await new_runner(store)
    assert tenants(await runner.claim(20)) == {"a": 10, "c": 10}
    assert tenants(await runner.claim(25)) == {"a": 10, "c": 10, "b": 5}


async def test_more_tenants_than_a_claim_takes_jobs_are_all_served(store: Store) -> None:
    await rule(store, fair=True)
    for i in range(300):
        await enqueue(store, 2, tenant=f"t{i:03}")
    runner = await new_runner(store)
    served = tenants([job for _ in range(60) for job in await runner.claim(5)])
    assert len(served) > 200, "no tenant waits for ever"
    rest = tenants([job for _ in range(60) for job in await runner.claim(5)])
    assert set((served + rest).values()) == {2}


async def test_only_known_types_are_claimed_and_others_delay_none(store: Store) -> None:
    await rule(store, fair=True)
    await enqueue(store, 20, tenant="a", type="strange")
    await enqueue(store, 20, tenant="b")
    runner = await new_runner(store)
    assert tenants(await runner.claim(10)) == {"b": 10}
    await enqueue(store, 20, tenant="c")
    assert tenants(await runner.claim(10)) == {"b": 5, "c": 5}


async def test_expired_jobs_are_never_claimed(store: Store, clock: ManualClock) -> None:
    await rule(store, fair=True)
    await enqueue(store, 150, tenant="a", expires=SECOND)
    await enqueue(store, 5, tenant="a")
    clock.advance(SECOND)
    runner = await new_runner(store)
    jobs = [job for _ in range(3) for job in await runner.claim()]
    assert len(jobs) == 5


async def test_a_queue_that_becomes_fair_shares_out_what_waits_already(store: Store) -> None:
    await enqueue(store, 300, tenant="a")
    await enqueue(store, 300, tenant="b")
    await rule(store, fair=True)
    while (await store.jobs.admit(1000)).next_due_in == 0:
        pass
    runner = await new_runner(store)
    assert tenants(await runner.claim(20)) == {"a": 10, "b": 10}


async def test_a_queue_that_has_just_become_fair_gives_what_it_has(store: Store) -> None:
    await enqueue(store, 30, tenant="a")
    await rule(store, fair=True)
    first = await enqueue_one(store, tenant="b")
    runner = await new_runner(store)
    jobs = await runner.claim(10)
    assert first in [job.id for job in jobs]
    assert len(jobs) == 10


async def test_jobs_not_due_when_their_queue_became_fair_take_turns(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 50, tenant="a", delay=SECOND)
    await enqueue(store, 50, tenant="b", delay=SECOND)
    await rule(store, fair=True)
    for _ in range(2):
        clock.advance(SECOND)
        while (await store.jobs.admit(1000)).next_due_in == 0:
            pass
    runner = await new_runner(store)
    assert tenants(await runner.claim(20)) == {"a": 10, "b": 10}


async def test_a_queue_that_is_fair_no_more_is_plain(store: Store) -> None:
    await rule(store, fair=True)
    first = await enqueue(store, 20, tenant="a")
    await enqueue(store, 20, tenant="b")
    await rule(store)
    runner = await new_runner(store)
    assert sorted(job.id for job in await runner.claim(20)) == sorted(first)
    later = await enqueue(store, 20, tenant="a")
    await rule(store, fair=True)
    while (await store.jobs.admit(1000)).next_due_in == 0:
        pass
    assert tenants(await runner.claim(20)) == {"a": 10, "b": 10}
    statuses = [(await look(store, id_)).status for id_ in later]
    assert statuses.count(Status.RUNNING) == 10


async def test_jobs_that_come_back_take_turns_again(store: Store, clock: ManualClock) -> None:
    await rule(store, fair=True)
    ids = [await enqueue_one(store, tenant=tenant) for tenant in "abcdef"]
    runner = await new_runner(store)
    jobs = {job.id: job for job in await runner.claim()}
    await settle(store, failed(jobs[ids[0]]))
    await settle(store, requeued(jobs[ids[1]]))
    await settle(store, cancelled(jobs[ids[2]]))
    await settle(store, failed(jobs[ids[3]]))
    runner.held = []
    await store.operator.retry([ids[2]])
    await store.operator.run_now([ids[3]])
    clock.advance(WAIT)
    await store.jobs.admit(10)
    assert sorted(job.id for job in await runner.claim()) == sorted(ids[:4])


async def test_parked_jobs_take_turns_when_they_are_free(store: Store) -> None:
    await rule(store, fair=True)
    ids = [await put(store, Status.BLOCKED, type="new", tenant="a") for _ in range(3)]
    await enqueue(store, 20, tenant="b", type="new")
    await store.workers.beat(worker_info(types=("new",)))
    runner = await new_runner(store)
    assert set(ids) <= {job.id for job in await runner.claim(6, types=("new",))}


async def test_jobs_that_are_moved_into_a_fair_queue_take_turns(store: Store) -> None:
    await rule(store, "fair", fair=True)
    await enqueue(store, 30, queue="fair", tenant="b")
    ids = await enqueue(store, 5, queue="plain", tenant="a")
    await store.operator.change(ids, JobChange(queue="fair"))
    runner = await new_runner(store)
    assert tenants(await runner.claim(10, queues=("fair",))) == {"a": 5, "b": 5}


async def test_a_fair_queue_keeps_its_limit_and_its_rate(store: Store, clock: ManualClock) -> None:
    await rule(store, fair=True, max_concurrency=4, rate_limit=parse_rate("10/s burst 6", "r"))
    await enqueue(store, 30, tenant="a")
    await enqueue(store, 30, tenant="b")
    runner = await new_runner(store)
    assert tenants(await runner.claim()) == {"a": 2, "b": 2}
    await runner.complete()
    assert tenants(await runner.claim()) == {"a": 1, "b": 1}
    clock.advance(SECOND)
    assert tenants(await runner.claim()) == {"a": 1, "b": 1}


async def test_what_the_code_declares_of_fairness_holds(store: Store) -> None:
    await store.queues.declare({"default": QueueSettings(fair=True, weights={"a": 9.0})})
    await rule(store, weights={"b": 3.0})
    for tenant in "abc":
        await enqueue(store, 50, tenant=tenant)
    runner = await new_runner(store)
    assert tenants(await runner.claim(26)) == {"a": 18, "b": 6, "c": 2}


async def test_a_repeated_claim_returns_the_same_jobs(store: Store) -> None:
    await rule(store, fair=True)
    await enqueue(store, 10, tenant="a")
    await enqueue(store, 10, tenant="b")
    runner = await new_runner(store)
    first = await runner.claim(4, claim=77)
    assert {job.id for job in await runner.claim(4, claim=77)} == {job.id for job in first}
