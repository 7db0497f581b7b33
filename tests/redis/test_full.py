"""A server at its memory limit takes no new jobs, and everything else goes on: only so can it get empty again."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.chains import after, links
from tests.support.clock import ManualClock
from tests.support.seed import (
    LEASE,
    claim_one,
    completed,
    dead,
    enqueue,
    enqueue_one,
    failed,
    look,
    new_job,
    open_lease,
    request,
    requeued,
    settle,
    status_of,
    worker_info,
)
from tests.support.servers.redis import RedisServer, new_redis
from tests.support.servers.redis_programs import Program, programs
from tests.support.timing import said
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import parse_rate
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.open import open_store
from windlass.store.records import Campaign, Settled
from windlass.store.redis.connection.access import Access
from windlass.store.redis.scripts.loader import script, script_names
from windlass.store.redis.store import RedisStore

HOUR = DAY // 24


@pytest.fixture(scope="module", params=programs(), ids=lambda program: program.version)
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    program: Program = request.param
    made = new_redis(program=program)
    made.start()
    yield made
    made.remove()


@pytest.fixture
async def store(server: RedisServer, clock: ManualClock) -> AsyncIterator[RedisStore]:
    server.config(maxmemory=0)
    server.execute("FLUSHALL")
    opened = open_store(server.url, clock=clock)
    assert isinstance(opened, RedisStore)
    await open_lease(opened)
    yield opened
    await opened.close()


def fill(server: RedisServer) -> None:
    """The server has used more memory than it may."""
    server.config(maxmemory=1)


async def finished(store: RedisStore, jobs: int = 3) -> list[JobId]:
    await enqueue(store, jobs)
    claimed = await store.jobs.claim(request(limit=jobs))
    await store.jobs.settle([completed(job) for job in claimed])
    return [job.id for job in claimed]


def test_every_script_that_takes_no_jobs_in_works_at_the_memory_limit() -> None:
    changing = [made for made in map(script, script_names()) if made.writes and not made.grows]
    assert len(changing) > 50
    assert [
        made.name for made in changing if "\nallow_write_at_memory_limit()" not in made.text.replace("\n  ", "\n")
    ] == []


async def test_new_jobs_are_refused(server: RedisServer, store: RedisStore) -> None:
    await enqueue_one(store)
    fill(server)
    for jobs in ([new_job()], [new_job() for _ in range(1_200)], [new_job(queue="new")]):
        with pytest.raises(StoreUnavailable, match=r"memory is (nearly )?full") as caught:
            await store.jobs.enqueue(jobs)
        assert not caught.value.maybe_done
    server.config(maxmemory=0)
    assert sum((await store.operator.counts()).totals.values()) == 1


async def test_a_refusal_for_lack_of_memory_is_no_script_that_stopped_half_way(
    server: RedisServer, store: RedisStore
) -> None:
    """Nothing was written: the coordinator need not go through all jobs to repair anything."""
    await enqueue_one(store)
    fill(server)
    with pytest.raises(StoreUnavailable, match="memory is full"):
        await enqueue_one(store)
    assert not store._access.server.script_stopped


async def test_old_jobs_are_pruned(server: RedisServer, store: RedisStore, clock: ManualClock) -> None:
    ids = await finished(store)
    fill(server)
    clock.advance(400 * DAY)
    assert sorted(await store.operator.prune(100)) == sorted(ids)


async def test_jobs_are_deleted_and_cancelled(server: RedisServer, store: RedisStore) -> None:
    ids = await finished(store)
    waiting = await enqueue_one(store)
    fill(server)
    await store.operator.delete(ids)
    await store.operator.cancel([waiting], "enough")
    assert await status_of(store, waiting) is Status.CANCELLED
    assert (await store.operator.counts()).totals["completed"] == 0


async def test_a_worker_whose_code_declares_a_new_queue_starts(server: RedisServer, store: RedisStore) -> None:
    """Else a deploy with a new queue would leave a full server without workers."""
    await enqueue_one(store)
    fill(server)
    await store.queues.declare({"new": QueueSettings(max_concurrency=2)})
    assert [queue.name for queue in await store.queues.list()] == ["default", "new"]
    assert await settle(store, completed(await claim_one(store, queues=("new", "default")))) is Settled.SETTLED


async def test_a_queue_that_was_named_and_not_opened_holds_up_nothing(
    server: RedisServer, store: RedisStore, clock: ManualClock
) -> None:
    """Its producer died in between."""
    ids = await finished(store)
    await store._access.command("SADD", "queues", "half")
    fill(server)
    clock.advance(400 * DAY)
    assert sorted(await store.operator.prune(100)) == sorted(ids)
    await store.tidy()


async def test_attempts_end_in_every_way(server: RedisServer, store: RedisStore) -> None:
    await enqueue(store, 5)
    await store.jobs.enqueue(links(2, queue="linked"))
    fill(server)
    for ending in (completed, failed, dead, requeued):
        assert await settle(store, ending(await claim_one(store))) is Settled.SETTLED
    parent = await claim_one(store, queues=("linked",))
    assert await settle(store, completed(parent, '"some"')) is Settled.SETTLED
    assert await settle(store, completed(await claim_one(store, queues=("linked",)))) is Settled.SETTLED


async def test_jobs_of_queues_with_rules_run(server: RedisServer, store: RedisStore) -> None:
    rate = parse_rate("100/s", "r")
    await store.queues.change("default", QueueSettings(fair=True, max_concurrency=2, rate_limit=rate))
    await store.jobs.enqueue([new_job(tenant=f"n{n % 2}", concurrency_key="k", key_rate=rate) for n in range(3)])
    fill(server)
    for _ in range(3):
        assert await settle(store, completed(await claim_one(store))) is Settled.SETTLED


async def test_runners_live_die_and_are_rescued(server: RedisServer, store: RedisStore, clock: ManualClock) -> None:
    await enqueue(store, 2)
    fill(server)
    await open_lease(store, "r2", "w2")
    job = await claim_one(store, "r2")
    assert (await store.leases.renew("w1", ["r1"], LEASE)).lost == ()
    await store.workers.beat(worker_info("w1"))
    assert await store.leader.campaign(Campaign(candidate="w1", length=LEASE)) == 1
    clock.advance(LEASE // 3)
    await store.leases.renew("w1", ["r1"], LEASE)
    clock.advance(LEASE // 3)
    await store.leases.renew("w1", ["r1"], LEASE)
    clock.advance(LEASE // 2)
    await store.leases.renew("w1", ["r1"], LEASE)
    assert [each.id for each in await store.leases.rescue(10)] == [job.id]
    await store.leader.resign("w1")
    await store.workers.unregister("w1")


async def test_time_goes_on(server: RedisServer, store: RedisStore, clock: ManualClock) -> None:
    later = await enqueue_one(store, delay=SECOND)
    lapsing = await enqueue_one(store, queue="lapsing", expires=SECOND)
    unknown = await enqueue_one(store, queue="parked", type="unknown")
    await store.queues.change("default", QueueSettings(ageing=SECOND))
    await enqueue_one(store, priority=1)
    fill(server)
    clock.advance(2 * SECOND)
    assert (await store.jobs.admit(10)).jobs == 1
    assert len(await store.jobs.expire(10)) == 1
    assert await status_of(store, later) is Status.PENDING
    assert await status_of(store, lapsing) is Status.CANCELLED
    clock.advance(2 * HOUR)
    assert await store.jobs.age(10) == 1
    await store.workers.beat(worker_info("w1"))
    assert await store.jobs.park() == {"unknown": 1}
    await store.workers.beat(worker_info("w1", types=("unknown",)))
    assert await status_of(store, unknown) is Status.PENDING
    await store.tidy()
    await store.stats.sample()


async def test_people_can_act(server: RedisServer, store: RedisStore) -> None:
    await enqueue(store, 3)
    gone = await claim_one(store)
    await settle(store, dead(gone))
    moving = await claim_one(store)
    await settle(store, requeued(moving))
    await enqueue_one(store, queue="other")
    await store.schedules.declare({"s": said()})
    fill(server)
    await store.queues.pause("default", None)
    await store.operator.retry([gone.id])
    assert await status_of(store, gone.id) is Status.PENDING
    await store.operator.change([moving.id], JobChange(queue="other"))
    assert (await look(store, moving.id)).queue == "other"
    await store.schedules.remove("s")


async def test_what_was_committed_is_stored_and_what_was_not_goes(
    server: RedisServer, store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer that dies in the middle of a large enqueue leaves it to `tidy`, also on a full server."""
    call = Access.call

    async def dies(self: Access, name: str, queue: str, *words: object) -> object:
        if name == "store_batch":
            raise StoreUnavailable("gone")
        return await call(self, name, queue, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(Access, "call", dies)
    with pytest.raises(StoreUnavailable, match="gone"):
        await enqueue(store, 1_200)
    monkeypatch.setattr(Access, "call", call)
    fill(server)
    clock.advance(10 * SECOND)
    await store.tidy()
    assert (await store.operator.counts()).totals["pending"] == 1_200


async def test_children_in_other_queues_are_released(server: RedisServer, store: RedisStore) -> None:
    parent = new_job()
    child = after(new_job(queue="other"), parent.id)
    await store.jobs.enqueue([parent, child])
    fill(server)
    await settle(store, completed(await claim_one(store)))
    assert await status_of(store, child.id) is Status.PENDING
