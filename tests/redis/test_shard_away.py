"""A cluster of which one server is away: the queues of the others go on, and no call waits for it again and again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from secrets import token_hex
from typing import TypeVar

import pytest

from tests.support.seed import (
    claim_ids,
    claim_one,
    completed,
    enqueue_one,
    open_lease,
    request,
    settle,
    status_of,
    worker_info,
)
from tests.support.servers.redis import RedisServer
from tests.support.servers.redis_cluster import RedisCluster, new_cluster_without_replicas
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import Rescued, RunnerEnd, Settled

T = TypeVar("T")
DEADLINE = 2.0
GLOBAL = "*"
SHORT = SECOND // 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    """Tests leave it well."""
    made = new_cluster_without_replicas()
    made.start()
    yield made
    made.remove()


@pytest.fixture
async def store(cluster: RedisCluster) -> AsyncIterator[Store]:
    opened = open_store(f"{cluster.url}?prefix=t{token_hex(4)}", deadline=DEADLINE)
    yield opened
    await opened.close()


@pytest.fixture(params=["frozen", "killed"])
def lose(request: pytest.FixtureRequest, cluster: RedisCluster) -> Iterator["Losing"]:
    losing = Losing(cluster, frozen=request.param == "frozen")
    yield losing
    losing.bring_back()


class Losing:
    """Takes a server away, silently or not, and brings it back."""

    def __init__(self, cluster: RedisCluster, *, frozen: bool) -> None:
        self.cluster = cluster
        self._frozen = frozen
        self._lost: RedisServer | None = None

    def queues(self, kind: str) -> tuple[str, str]:
        """Two queues, near and far: the far one is on a server that has neither the near one nor the global keys."""
        global_port = self.cluster.master_of(f"{{{GLOBAL}}}").port
        names = [f"{kind}{number}" for number in range(50)]
        far = next(name for name in names if self.cluster.master_of(f"{{{name}}}").port != global_port)
        away = self.cluster.master_of(f"{{{far}}}").port
        return next(name for name in names if self.cluster.master_of(f"{{{name}}}").port != away), far

    def __call__(self, queue: str) -> None:
        self._lost = self.cluster.master_of(f"{{{queue}}}")
        (self._lost.freeze if self._frozen else self._lost.kill)()

    def bring_back(self) -> None:
        if self._lost is not None:
            (self._lost.thaw if self._frozen else self._lost.start)()
            self._lost = None
            self.cluster.settle()


async def test_claims_continue_from_the_other_queues_and_none_waits_each_time(store: Store, lose: Losing) -> None:
    near, far = lose.queues("claims")
    await open_lease(store)
    await enqueue_one(store, queue=far)
    ids = [await enqueue_one(store, queue=near) for _ in range(10)]
    lose(far)
    taken: list[str] = []
    # Were the server that is away waited for by each claim, these would take ten deadlines and more.
    async with asyncio.timeout(5 * DEADLINE):
        for claim in range(1, 11):
            try:
                taken += await claim_ids(store, queues=(far, near), limit=1, claim=claim)
            except StoreUnavailable:
                taken += await claim_ids(store, queues=(far, near), limit=1, claim=claim)
    assert taken == ids
    lose.bring_back()
    assert len(await _in_time(lambda: claim_ids(store, queues=(far,), claim=99))) == 1


async def test_an_empty_queue_beside_one_that_is_away_is_no_trouble(store: Store, lose: Losing) -> None:
    """Else the claim loop would stay in one claim, and look after nothing else."""
    near, far = lose.queues("empty")
    await open_lease(store)
    for queue in (near, far):
        await enqueue_one(store, queue=queue)
    assert len(await claim_ids(store, queues=(near,), claim=1)) == 1
    lose(far)
    await _lost(store, far)
    assert await store.jobs.claim(request(queues=(far, near), claim=2)) == []
    with pytest.raises(StoreUnavailable):
        await store.jobs.claim(request(queues=(far,), claim=3))


async def test_delayed_jobs_are_admitted_and_expired_ones_cancelled(store: Store, lose: Losing) -> None:
    near, far = lose.queues("delayed")
    due = await enqueue_one(store, queue=near, delay=SHORT)
    over = await enqueue_one(store, queue=near, expires=SHORT)
    await enqueue_one(store, queue=far, delay=SHORT)
    lose(far)
    await asyncio.sleep(SHORT / SECOND)
    with pytest.raises(StoreUnavailable):
        await store.jobs.admit(100)
    assert await status_of(store, due) is Status.PENDING
    assert await store.jobs.expire(100) == [over]  # the ids wake groups; a call without any reports the lost queue
    with pytest.raises(StoreUnavailable):
        await store.jobs.expire(100)
    assert await status_of(store, over) is Status.CANCELLED


async def test_jobs_of_a_dead_runner_are_put_back_and_those_of_the_other_queue_later(
    store: Store, lose: Losing
) -> None:
    near, far = lose.queues("rescue")
    await open_lease(store, length=SHORT)
    jobs = {}
    for claim, queue in enumerate((near, far)):
        await enqueue_one(store, queue=queue)
        jobs[queue] = await claim_one(store, queues=(queue,), claim=claim)
    lose(far)
    await asyncio.sleep(2 * SHORT / SECOND)
    rescued = await _until_some(store)
    assert [job.id for job in rescued] == [jobs[near].id]
    assert await status_of(store, jobs[near].id) is Status.PENDING
    lose.bring_back()
    assert [job.id for job in await _until_some(store)] == [jobs[far].id]


async def test_very_many_dead_runners_of_the_other_queue_delay_no_rescue(store: Store, lose: Losing) -> None:
    """A rolling deploy while a server is away leaves as many as there were runners; `_until_some` asks for ten."""
    near, far = lose.queues("crowd")
    await enqueue_one(store, queue=far)
    crowd = [await open_lease(store, f"crowd{number}") for number in range(25)]
    held = await claim_one(store, crowd[-1], queues=(far,), claim=1)
    for runner in crowd[:-1]:
        assert await claim_ids(store, runner, queues=(far,), claim=1) == []
    await open_lease(store, "last", length=SHORT)
    await enqueue_one(store, queue=near)
    job = await claim_one(store, "last", queues=(near,), claim=1)
    lose(far)
    for runner in crowd:
        await store.leases.end(RunnerEnd(runner=runner, started=frozenset(), crashed=False))
    assert [each.id for each in await _until_some(store)] == [job.id]
    lose.bring_back()
    assert [each.id for each in await _until_some(store)] == [held.id]


async def test_a_runner_that_ended_is_seen_to_without_waiting(store: Store, lose: Losing) -> None:
    """Its supervisor has another to start."""
    near, far = lose.queues("ended")
    await open_lease(store)
    jobs = {}
    for claim, queue in enumerate((near, far)):
        await enqueue_one(store, queue=queue)
        jobs[queue] = await claim_one(store, queues=(queue,), claim=claim)
    lose(far)
    ended = RunnerEnd(runner="r1", started=frozenset(), crashed=False)
    assert [job.id for job in await store.leases.end(ended)] == [jobs[near].id]
    lose.bring_back()
    assert [job.id for job in await _until_some(store)] == [jobs[far].id]


async def test_leases_are_renewed_and_what_can_be_settled_is(store: Store, lose: Losing) -> None:
    near, far = lose.queues("renew")
    await open_lease(store)
    jobs = {}
    for claim, queue in enumerate((near, far)):
        await enqueue_one(store, queue=queue)
        jobs[queue] = await claim_one(store, queues=(queue,), claim=claim)
    lose(far)
    assert (await store.leases.renew("w1", ["r1"], 30 * SECOND)).kept == ("r1",)
    await store.workers.beat(worker_info())
    assert [job.id for job in await store.jobs.held("r1")] == [jobs[near].id]
    assert await settle(store, completed(jobs[near])) is Settled.SETTLED
    with pytest.raises(StoreUnavailable):
        await settle(store, completed(jobs[far]))
    lose.bring_back()
    answer = await _in_time(lambda: settle(store, completed(jobs[far])))
    assert answer in (Settled.SETTLED, Settled.ALREADY)


async def test_every_duty_goes_on_for_the_others(store: Store, lose: Losing) -> None:
    near, far = lose.queues("duties")
    await store.workers.beat(worker_info(types=("known",)))
    for queue in (near, far):
        await enqueue_one(store, queue=queue, type="strange")
    lose(far)
    await _lost(store, far)
    assert await store.jobs.park() == {"strange": 1}
    duties: list[Callable[[], Awaitable[object]]] = [
        lambda: store.jobs.age(10),
        lambda: store.operator.prune(10),
        store.tidy,
    ]
    for duty in duties:
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await duty()
    lose.bring_back()
    assert await _in_time(store.jobs.park) == {"strange": 1}


async def test_without_the_global_keys_known_queues_take_jobs_and_outcomes(store: Store, lose: Losing) -> None:
    """What is claimed goes on and is recorded; a runner admits jobs of its queues; leases and rescue wait."""
    global_port = lose.cluster.master_of(f"{{{GLOBAL}}}").port
    near = next(f"o{n}" for n in range(50) if lose.cluster.master_of(f"{{o{n}}}").port != global_port)
    await open_lease(store)
    await enqueue_one(store, queue=near)
    job = await claim_one(store, queues=(near,), claim=1)
    lose(GLOBAL)
    waits: list[Callable[[], Awaitable[object]]] = [
        lambda: store.leases.renew("w1", ["r1"], 30 * SECOND),
        lambda: store.jobs.admit(10),
        lambda: store.leases.rescue(10),
    ]
    for waiting in waits:
        with pytest.raises(StoreUnavailable):
            await waiting()
    assert await settle(store, completed(job)) is Settled.SETTLED
    id_ = await enqueue_one(store, queue=near, fresh="here", delay=1)
    await asyncio.sleep(0.01)
    assert (await store.jobs.admit(10, (near,))).jobs == 1
    # For as long as the queue's copy of the lease holds.
    assert await claim_ids(store, queues=(near,), claim=2) == [id_]
    lose.bring_back()
    assert (await _in_time(lambda: store.leases.renew("w1", ["r1"], 30 * SECOND))).kept == ("r1",)


async def _lost(store: Store, queue: str) -> None:
    """Until it is known that the server of this queue is away."""
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await store.jobs.claim(request(queues=(queue,), claim=1000))


async def _until_some(store: Store) -> list[Rescued]:
    """Until something is rescued."""

    async def rescue() -> list[Rescued]:
        found = await store.leases.rescue(10)
        if not found:
            raise StoreUnavailable("nothing yet")
        return list(found)

    return await _in_time(rescue)


async def _in_time(call: Callable[[], Awaitable[T]]) -> T:
    """Until a server that came back is known to be there."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await call()
            except StoreUnavailable:
                await asyncio.sleep(0.05)
