"""Calls that wait for a connection, or for others to be enqueued first: each gets its turn, whatever others do."""

import asyncio
from collections.abc import Sequence

from tests.support.seed import enqueue, new_job
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.moments import SECOND
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.postgres.verbs.enqueue import MAX_TEXT
from windlass.store.postgres.verbs.enqueue_batch import Batcher
from windlass.store.records import LeaseRequest, ProcessRole

LEASE = 30 * SECOND


async def test_calls_without_a_pause_do_not_keep_others_from_the_one_connection(store: Store) -> None:
    supervisor = open_store(store.address, opener=ProcessRole.SUPERVISOR)
    await supervisor.leases.open(LeaseRequest(runner="r", worker="w", length=LEASE))
    looked = 0

    async def look_again_and_again() -> None:
        nonlocal looked
        while True:
            await supervisor.operator.counts()
            looked += 1

    looking = asyncio.create_task(look_again_and_again())
    while looked < 3:  # noqa: ASYNC110
        await asyncio.sleep(0)
    before = looked
    assert await supervisor.leases.cancels("w") == ()
    assert looked <= before + 2
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    await supervisor.close()


async def test_a_turn_that_is_not_wanted_any_more_is_passed_on(store: Store) -> None:
    supervisor = open_store(store.address, opener=ProcessRole.SUPERVISOR)
    await supervisor.migrate()
    looks = [asyncio.create_task(supervisor.operator.counts()) for _ in range(20)]
    for _ in range(3):
        await asyncio.sleep(0)
    for look in looks[1::2]:
        look.cancel()
    answers = await asyncio.gather(*looks, return_exceptions=True)
    assert [isinstance(each, BaseException) for each in answers] == [False, True] * 10
    assert (await supervisor.operator.counts()).totals["pending"] == 0
    await supervisor.close()


async def test_an_enqueue_after_every_task_was_cancelled_does_not_wait_for_ever(store: Store) -> None:
    await enqueue(store)
    waiting = [asyncio.create_task(store.jobs.enqueue([new_job(fresh=True)])) for _ in range(5)]
    await waiting[0]
    await asyncio.sleep(0)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    last = new_job(fresh=True)
    async with asyncio.timeout(30):
        assert await store.jobs.enqueue([last]) == [Enqueued(last.id)]


async def test_waiting_calls_fail_if_the_one_that_sends_for_them_is_ended() -> None:
    line = Batcher()
    go, under_way, never = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def store_first(jobs: object, until: float | None) -> list[Enqueued]:
        await go.wait()
        return [Enqueued("first")]

    async def store_others(jobs: object, until: float | None) -> list[Enqueued]:
        under_way.set()
        await never.wait()
        return []

    first = asyncio.create_task(line.add("a", [new_job()], store_first, 60))
    await asyncio.sleep(0)
    others = [asyncio.create_task(line.add(kind, [new_job()], store_others, 60)) for kind in ("a", "b")]
    await asyncio.sleep(0)
    go.set()
    await first
    await under_way.wait()
    assert line._task is not None
    line._task.cancel()
    sent, unsent = await asyncio.gather(*others, return_exceptions=True)
    assert isinstance(sent, StoreUnavailable)
    assert isinstance(unsent, StoreUnavailable)
    assert (sent.maybe_done, unsent.maybe_done) == (True, False)


async def test_what_goes_together_is_bounded_by_jobs_and_by_text() -> None:
    line = Batcher()
    sizes: list[int] = []

    async def store(jobs: Sequence[NewJob], until: float | None) -> list[Enqueued]:
        sizes.append(len(jobs))
        await asyncio.sleep(0)
        return [Enqueued(job.id) for job in jobs]

    large = [new_job(payload="x" * (MAX_TEXT // 2 - 1)) for _ in range(3)]
    enqueues = [[new_job()], *[[job] for job in large], *[[new_job()] * 400 for _ in range(5)]]
    kinds = ["first", *["large"] * 3, *["many"] * 5]
    await asyncio.gather(*[line.add(kind, jobs, store, 60) for kind, jobs in zip(kinds, enqueues, strict=True)])
    assert sizes == [1, 2, 800, 1, 800, 400]
