"""What scripts read, and what stays behind, is bounded by text and by count: see decision 0029."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest

from tests.redis.test_bounds import MAX_COMMANDS, Counting
from tests.support.clock import ManualClock
from tests.support.seed import (
    claim_one,
    completed,
    enqueue,
    failed,
    new_job,
    open_lease,
    request,
    settle,
    status_of,
    worker_info,
)
from tests.support.servers.redis import RedisServer, new_redis
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import parse_rate
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Claimed, NewJob
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.open import open_store
from windlass.store.records import RunnerEnd, Settled
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.wire import Call
from windlass.store.redis.store import RedisStore

LARGE = '"' + "x" * 64_000 + '"'
MAX_LARGE = 50
"""Such jobs that one call of a script takes: about three megabytes."""


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    made = new_redis()
    made.start()
    yield made
    made.remove()


@pytest.fixture
async def store(server: RedisServer, clock: ManualClock) -> AsyncIterator[RedisStore]:
    server.execute("FLUSHALL")
    opened = open_store(server.url, clock=clock)
    assert isinstance(opened, RedisStore)
    await open_lease(opened, length=1_000 * DAY)
    yield opened
    await opened.close()


def entries(server: RedisServer, key: str) -> int:
    """How many a key of the queue `default` has."""
    (name,) = (each.decode() for each in server.execute("KEYS", f"*{{default}}:{key}"))
    kind = server.execute("TYPE", name)
    return int(server.execute("HLEN" if kind == b"hash" else "ZCARD", name))


async def run(store: RedisStore, jobs: list[NewJob]) -> None:
    await store.jobs.enqueue(jobs)
    claimed = await store.jobs.claim(request(most=250, limit=250))
    assert len(claimed) == len(jobs)
    await store.jobs.settle([completed(job) for job in claimed])


async def test_windows_of_keys_that_are_over_go_as_fast_as_others_come(
    store: RedisStore, server: RedisServer, clock: ManualClock
) -> None:
    """Without a coordinator: a minute of 83 jobs a second is more than that clears in its minute."""
    for turn in range(12):
        await run(store, [new_job(idempotency_key=f"{turn} {n}", idempotency_window=SECOND) for n in range(100)])
        clock.advance(2 * SECOND)
    assert entries(server, "key_windows") <= 200
    assert entries(server, "idempotency_keys") <= 200


async def test_all_windows_that_are_over_are_cleared_by_one_prune(
    store: RedisStore, server: RedisServer, clock: ManualClock
) -> None:
    for turn in range(6):
        await run(store, [new_job(idempotency_key=f"{turn} {n}", idempotency_window=SECOND) for n in range(250)])
    clock.advance(2 * SECOND)
    assert entries(server, "key_windows") == 1_500
    await store.operator.prune(10)
    assert server.execute("KEYS", "*{default}:key_windows") == []
    assert server.execute("KEYS", "*{default}:idempotency_keys") == []


async def test_token_buckets_of_keys_that_are_full_again_go_as_fast_as_others_come(
    store: RedisStore, server: RedisServer, clock: ManualClock
) -> None:
    rate = parse_rate("10/s", "r")
    for turn in range(20):
        await run(store, [new_job(concurrency_key=f"{turn} {n}", key_rate=rate) for n in range(100)])
        clock.advance(2 * SECOND)
    assert entries(server, "token_buckets") < 1_000


async def test_very_many_tenants_of_unknown_types_do_not_make_a_claim_long(
    store: RedisStore, server: RedisServer
) -> None:
    """Nor do they hide jobs that the runner can run."""
    await store.queues.change("default", QueueSettings(fair=True))
    await store.jobs.enqueue([new_job(type="unknown", tenant=f"n{n}") for n in range(3_000)])
    (mine,) = await enqueue(store, 1, tenant="z")
    counting = Counting(store, server)
    assert [job.id for job in await store.jobs.claim(request(limit=10))] == [mine]
    assert counting.most["claim_limited"] <= MAX_COMMANDS


async def test_very_many_unknown_types_of_a_tenant_do_not_make_a_claim_long(
    store: RedisStore, server: RedisServer
) -> None:
    known = tuple(f"t{n}" for n in range(5))
    await store.queues.change("default", QueueSettings(fair=True))
    await store.jobs.enqueue([new_job(type=f"a{n}", tenant="n") for n in range(3_000)])
    ids = [await enqueue(store, 1, tenant="n", type=type_) for type_ in known]
    counting = Counting(store, server)
    claimed = await store.jobs.claim(request(limit=10, types=known))
    assert sorted(job.id for job in claimed) == sorted(id_ for (id_,) in ids)
    assert counting.most["claim_limited"] <= MAX_COMMANDS


async def test_hand_ins_that_were_given_up_do_not_hide_one_that_is_committed(
    store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, stop = Access.call, "commit_batch"

    async def dies(self: Access, name: str, queue: str, *words: object) -> object:
        if name == stop:
            raise StoreUnavailable("gone")
        return await call(self, name, queue, *words)  # type: ignore[arg-type]

    monkeypatch.setattr(Access, "call", dies)
    for _ in range(101):
        with pytest.raises(StoreUnavailable, match="gone"):
            await store.jobs.enqueue([new_job(type=f"t{n}") for n in range(150)])
    stop = "store_batch"
    with pytest.raises(StoreUnavailable, match="gone"):
        await enqueue(store, 600)
    monkeypatch.setattr(Access, "call", call)
    clock.advance(10 * SECOND)
    await store.tidy()
    assert (await store.operator.counts()).totals["pending"] == 600


@pytest.mark.parametrize("limits", [QueueSettings(), QueueSettings(max_concurrency=900), QueueSettings(fair=True)])
async def test_a_claim_of_large_jobs_is_cut_short_and_the_next_comes_at_once(
    store: RedisStore, limits: QueueSettings
) -> None:
    await store.queues.change("default", limits)
    for _ in range(10):
        await enqueue(store, 10, payload=LARGE)
    taken = 0
    while taken < 100:
        jobs = await store.jobs.claim(request(most=250, limit=250))
        assert 1 < len(jobs) <= 20
        taken += len(jobs)
        if taken < 100:
            assert await store.signals.wait(store.signals.cursor(), 20)


class Spy:
    """Keeps every call of a script, and its reply."""

    def __init__(self, store: RedisStore) -> None:
        self.heard: list[tuple[Call, Any]] = []
        self._wire = store._access.server.wire
        self._calls: Callable[[Sequence[Call], float], Awaitable[list[Any]]] = self._wire.calls
        self._wire.calls = self.calls  # type: ignore[method-assign]
        self._wire.call = self.call  # type: ignore[method-assign]

    async def call(self, call: Call, seconds: float, *, patient: bool = True) -> Any:
        (reply,) = await self.calls([call], seconds)
        return reply

    async def calls(self, calls: Sequence[Call], seconds: float, *, patient: bool = True) -> list[Any]:
        replies = await self._calls(calls, seconds)
        self.heard += zip(calls, replies, strict=True)
        return replies

    def replies(self, name: str) -> list[Any]:
        return [reply for call, reply in self.heard if call.script.name == name]


async def test_large_jobs_are_admitted_completed_and_dropped_few_at_a_time(
    store: RedisStore, clock: ManualClock
) -> None:
    for _ in range(10):
        await enqueue(store, 10, payload=LARGE, delay=SECOND)
    spy = Spy(store)
    clock.advance(2 * SECOND)
    while (await store.jobs.admit(1_000)).jobs:
        pass
    jobs: list[Claimed] = []
    while claimed := await store.jobs.claim(request(most=250, limit=250, claim=len(jobs) + 1)):
        jobs += claimed
    assert len(jobs) == 100
    await store.jobs.settle([completed(job) for job in jobs])
    clock.advance(400 * DAY)
    while await store.operator.prune(1_000):
        pass
    assert sum((await store.operator.counts()).totals.values()) == 0
    assert max(reply[0] for reply in spy.replies("admit")) <= MAX_LARGE
    assert max(reply.count(1) for reply in spy.replies("complete")) <= MAX_LARGE
    assert max(len(reply) - 1 for reply in spy.replies("prune")) <= MAX_LARGE


async def test_a_child_of_many_parents_with_large_results_takes_them_in_portions(store: RedisStore) -> None:
    parents = [new_job() for _ in range(40)]
    ids = tuple(each.id for each in parents)
    await store.jobs.enqueue(parents)
    for _ in parents:
        await settle(store, completed(await claim_one(store), LARGE))
    takes = tuple((f"p{n}", id_) for n, id_ in enumerate(ids))
    child = msgspec.structs.replace(new_job(), parent=ids[0], parents=ids, result_params=takes)
    spy = Spy(store)
    await store.jobs.enqueue([child])
    assert await status_of(store, child.id) is Status.PENDING
    reported = [call.size for call, _ in spy.heard if call.script.name == "deliver_mail"]
    assert len(reported) >= 15
    assert max(reported) < 4 * len(LARGE)
    assert max(sum(len(row[1]) for row in reply) for reply in spy.replies("register_children")) < 10 * len(LARGE)


LARGE_ONES, FEW = 60, 20
"""Jobs that are waiting, and how many of them one call of a script may write."""


async def enqueue_large(store: RedisStore, **fields: Any) -> list[JobId]:
    return [id_ for _ in range(LARGE_ONES // 10) for id_ in await enqueue(store, 10, payload=LARGE, **fields)]


async def claim_all(store: RedisStore, **fields: Any) -> list[Claimed]:
    jobs: list[Claimed] = []
    while claimed := await store.jobs.claim(request(most=250, limit=250, **fields)):
        jobs += claimed
    return jobs


async def test_large_jobs_are_replaced_moved_and_looked_at_few_at_a_time(store: RedisStore) -> None:
    ids = await enqueue_large(store)
    spy = Spy(store)
    settled = await store.jobs.settle([failed(job) for job in await claim_all(store)])
    assert settled == [Settled.SETTLED] * LARGE_ONES
    for moved in (
        await store.operator.run_now(ids),
        await store.operator.change(ids, JobChange(queue="other")),
        await store.operator.cancel(ids, "enough"),
    ):
        assert [(each.id, each.done) for each in moved if each is not None] == [(id_, True) for id_ in ids]
    found = await store.operator.get(ids)
    assert [(job.id, job.status, job.queue) for job in found if job] == [
        (id_, Status.CANCELLED, "other") for id_ in ids
    ]
    for name in ("replace_records", "move_out", "move_in"):
        sizes = [call.size for call, _ in spy.heard if call.script.name == name]
        assert max(sizes) < FEW * len(LARGE), name
        assert sum(sizes) > LARGE_ONES * len(LARGE), name
    assert max(len(reply) - 2 for reply in spy.replies("read_records")) <= MAX_LARGE


async def test_large_jobs_of_a_runner_are_named_and_put_back_few_at_a_time(store: RedisStore) -> None:
    ids = await enqueue_large(store)
    await claim_all(store)
    spy = Spy(store)
    assert sorted(each.id for each in await store.jobs.held("r1")) == sorted(ids)
    rescued = await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=False))
    assert sorted(each.id for each in rescued) == sorted(ids)
    assert max(len(reply) - 1 for reply in spy.replies("held")) <= 2 * FEW
    assert max(len(reply) - 2 for reply in spy.replies("runner_jobs")) <= FEW


async def test_large_jobs_expire_are_parked_and_age_few_at_a_time(store: RedisStore, clock: ManualClock) -> None:
    await store.queues.change("aged", QueueSettings(ageing=SECOND))
    await store.workers.beat(worker_info())
    await enqueue_large(store, expires=SECOND)
    await enqueue_large(store, queue="strange", type="strange")
    await enqueue_large(store, queue="aged")
    await enqueue(store, 1, queue="aged", priority=1)
    clock.advance(2 * SECOND)
    spy = Spy(store)
    assert len(await store.jobs.expire(1_000)) == LARGE_ONES
    assert await store.jobs.age(1_000) == LARGE_ONES
    assert await store.jobs.park() == {"strange": LARGE_ONES}
    await store.workers.beat(worker_info(types=("t", "strange")))
    assert (await store.operator.counts()).totals["pending"] == 2 * LARGE_ONES + 1
    assert max(reply[0] for reply in spy.replies("expire")) <= FEW
    assert max(reply[0] for reply in spy.replies("age")) <= FEW
    assert max(sum(reply) for reply in spy.replies("park")) <= FEW
    assert max(spy.replies("unpark")) <= FEW
