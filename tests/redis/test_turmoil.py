"""Many at work on the same few jobs: whatever they do, every place says the same of a job as its record."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from tests.support.clock import ManualClock
from tests.support.redis_books import wrong_books
from tests.support.seed import completed, dead, enqueue, failed, new_job, open_lease, request, requeued, snoozed
from tests.support.stores import STORES
from windlass.core.flow.queue import QueueSettings
from windlass.core.ids import JobId, new_id
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Note
from windlass.store.redis.store import RedisStore

QUEUES = ("a", "b", "c")
USERS = 6
ROUNDS = 60


@pytest.fixture
async def stores(tmp_path: Path, clock: ManualClock) -> AsyncIterator[list[Store]]:
    """The same store, opened by several."""
    opened = [STORES["redis"].open(tmp_path, clock) for _ in range(USERS)]
    yield opened
    for each in opened:
        await each.close()


class Person:
    """A user of a store that does anything with a few jobs that all share."""

    def __init__(self, store: Store, number: int, ids: list[JobId], clock: ManualClock) -> None:
        self._store, self._ids, self._clock = store, ids, clock
        self._random = Random(number)
        self._runner = f"r{number}"

    async def work(self) -> None:
        await open_lease(self._store, self._runner, length=3600 * SECOND)
        deeds: list[Callable[[], Awaitable[object]]] = [
            self._enqueue,
            self._claim_and_settle,
            self._claim_and_settle,
            self._operate,
            self._operate,
            self._move,
            self._keep_house,
        ]
        for _ in range(ROUNDS):
            await self._random.choice(deeds)()
            self._clock.advance(self._random.randrange(SECOND))

    def _some(self) -> list[JobId]:
        return self._random.sample(self._ids[-15:], 5)

    def _job(self) -> NewJob:
        """A new one, or one that was enqueued before; the same id always to the same queue."""
        choice = self._random.choice
        if choice([True, False]):
            self._ids.append(new_id())
        place = len(self._ids) - self._random.randint(1, 3)
        return new_job(
            id=self._ids[place],
            queue=QUEUES[place % len(QUEUES)],
            idempotency_key=choice([None, f"k{place % 4}"]),
            idempotency_window=choice([None, 3 * SECOND]),
            on_conflict=choice([OnConflict.EXISTING, OnConflict.REPLACE]),
            concurrency_key=choice([None, f"c{place % 3}"]),
            key_limit=choice([1, 2]),
            key_strict=choice([None, True]),
            tenant=choice([None, "x", "y"]),
            parent=choice([None, "p" * 36]),
            delay=choice([0, 0, SECOND]),
            expires=choice([None, 20 * SECOND]),
        )

    async def _enqueue(self) -> None:
        await self._store.jobs.enqueue([self._job()])

    async def _claim_and_settle(self) -> None:
        jobs = await self._store.jobs.claim(request(self._runner, queues=QUEUES, limit=4))
        await self._store.jobs.note(
            [Note(id=job.id, queue=job.queue, attempt=job.attempt, started_after=1) for job in jobs]
        )
        endings: list[Callable[..., Settlement]] = [completed, completed, failed, dead, snoozed, requeued]
        ended = self._random.sample(jobs, len(jobs) - (len(jobs) > 1))
        await self._store.jobs.settle([self._random.choice(endings)(job) for job in ended])

    async def _operate(self) -> None:
        operator = self._store.operator
        match self._random.randrange(5):
            case 0:
                await operator.cancel(self._some(), "so")
            case 1:
                await operator.retry(self._some())
            case 2:
                await operator.run_now(self._some())
            case 3:
                await operator.delete(self._some()[:1])
            case _:
                await operator.change(self._some(), JobChange(priority=self._random.randrange(3), delay=SECOND))

    async def _move(self) -> None:
        await self._store.operator.change(self._some(), JobChange(queue=self._random.choice(QUEUES)))

    async def _keep_house(self) -> None:
        await self._store.jobs.admit(10)
        await self._store.jobs.expire(10)
        await self._store.operator.prune(10)
        await self._store.tidy()


async def test_every_place_says_what_the_records_say(stores: list[Store], clock: ManualClock) -> None:
    first = stores[0]
    assert isinstance(first, RedisStore)
    await first.queues.change("b", QueueSettings(fair=True, max_concurrency=3))
    await first.queues.change("c", QueueSettings(retention={Status.COMPLETED: 0, Status.CANCELLED: SECOND}))
    ids = [new_id() for _ in range(12)]
    users = [Person(store, number, ids, clock) for number, store in enumerate(stores)]
    await asyncio.gather(*(person.work() for person in users))
    clock.advance(60 * SECOND)
    await first.tidy()
    assert await wrong_books(first) == []
    found = await first.operator.get(ids)
    totals = (await first.operator.counts()).totals
    assert sum(totals.values()) == sum(job is not None for job in found), "each of them is in one queue"


async def test_the_books_tell_when_something_is_amiss(stores: list[Store]) -> None:
    first = stores[0]
    assert isinstance(first, RedisStore)
    await enqueue(first, 2)
    assert await wrong_books(first) == []
    server = first._access.server
    (ready,) = server.keys.of_queue("default", ("ready",))
    await server.wire.command("ZREMRANGEBYRANK", ready, 0, 0, seconds=10)
    (said,) = await wrong_books(first)
    assert said.startswith("default: ready: missing {b")
