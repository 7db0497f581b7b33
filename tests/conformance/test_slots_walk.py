"""Many verbs in any order: a key never has too many at once, never idles while a job waits, and loses no job."""

from collections import Counter
from random import Random

import pytest

from tests.support.clock import ManualClock
from tests.support.key_queues import look_again, park_all, take
from tests.support.parts import extended
from tests.support.seed import ENDINGS, completed, enqueue, let_lapse, settle, worker_info
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Claimed, Job
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.contract import Store

QUEUES = ("default", "other")
TYPES = ("t", "strange")
LIMITS = {"one": 1, "two": 2, "strict": 1}
STEPS = 60


class Walk:
    """Random steps through the contract, by one seed."""

    def __init__(self, store: Store, clock: ManualClock, seed: int) -> None:
        self.store = store
        self.clock = clock
        self.random = Random(seed)
        self.ids: list[JobId] = []
        self.held: list[Claimed] = []
        self.verbs = [self.enqueue] * 4 + [self.claim, self.settle] * 4
        self.verbs += [self.cancel, self.retry, self.run_now, self.change, self.wait, self.rescue, self.park]

    def some(self) -> list[JobId]:
        return self.random.sample(self.ids, min(3, len(self.ids)))

    async def enqueue(self) -> None:
        key = self.random.choice(sorted(LIMITS))
        self.ids += await enqueue(
            self.store,
            self.random.randint(1, 4),
            concurrency_key=key,
            key_limit=LIMITS[key],
            key_strict=key == "strict",
            queue=self.random.choice(QUEUES),
            type=self.random.choice(TYPES),
            priority=self.random.randint(0, 2),
            delay=self.random.choice([0, 0, 5 * SECOND]),
            expires=self.random.choice([None, None, 20 * SECOND]),
        )

    async def claim(self) -> None:
        runner = f"r{self.random.random()}"
        self.held += await take(self.store, runner, queues=QUEUES, types=TYPES, limit=self.random.randint(1, 3))

    async def settle(self) -> None:
        if self.held:
            job = self.held.pop(self.random.randrange(len(self.held)))
            await settle(self.store, ENDINGS[self.random.choice(sorted(ENDINGS))](job))

    async def cancel(self) -> None:
        await self.store.operator.cancel(self.some(), "")

    async def retry(self) -> None:
        await self.store.operator.retry(self.some())

    async def run_now(self) -> None:
        await self.store.operator.run_now(self.some())

    async def change(self) -> None:
        changes = [JobChange(priority=5), JobChange(delay=5 * SECOND), JobChange(delay=0)]
        changes += [JobChange(queue=queue) for queue in QUEUES]
        await self.store.operator.change(self.some(), self.random.choice(changes))

    async def wait(self) -> None:
        self.clock.advance(7 * SECOND)
        await self.store.jobs.expire(100)

    async def rescue(self) -> None:
        await let_lapse(self.store, self.clock)
        await self.store.leases.rescue(100)

    async def park(self) -> None:
        await park_all(self.store)
        if self.random.random() < 0.7:
            await self.unpark()

    async def unpark(self) -> None:
        await self.store.workers.beat(worker_info(types=TYPES))
        await self.store.workers.unregister("w1")

    async def jobs(self) -> list[Job]:
        return [job for job in await self.store.operator.get(self.ids) if job is not None]


def holds(job: Job) -> bool:
    """Whether a job has surely a slot."""
    return job.status in (Status.PENDING, Status.RUNNING)


def may_hold(job: Job) -> bool:
    """In strict order, one that is parked or waits to be tried again has its slot too, unless a person put it off."""
    waits = job.status is Status.FAILED or job.snoozes > 0 or job.reason == "no worker for type"
    return holds(job) or (job.key_strict and waits and not job.finished)


def faults(jobs: list[Job]) -> list[str]:
    """Keys that have too many at once, and keys that a job waits for although they have too few."""
    holding = Counter((job.queue, job.concurrency_key) for job in jobs if holds(job))
    perhaps = Counter((job.queue, job.concurrency_key) for job in jobs if may_hold(job))
    waiting = {(job.queue, job.concurrency_key) for job in jobs if job.reason == "waits for its concurrency key"}
    return [f"{line}: {count} at once" for line, count in holding.items() if count > LIMITS[str(line[1])]] + [
        f"{line}: one waits, {perhaps[line]} hold a slot" for line in waiting if perhaps[line] < LIMITS[str(line[1])]
    ]


@pytest.mark.parametrize("seed", [0, 1, *extended(range(2, 12))])
async def test_a_walk(store: Store, clock: ManualClock, seed: int) -> None:
    walk = Walk(store, clock, seed)
    for _ in range(STEPS):
        verb = walk.random.choice(walk.verbs)
        await verb()
        await look_again(store)
        assert faults(await walk.jobs()) == [], verb.__name__
    await walk.unpark()
    for _ in range(3):
        await let_lapse(store, clock)
        await store.leases.rescue(100)
        clock.advance(DAY)
        await store.jobs.expire(1000)
        await look_again(store)
        while jobs := await take(store, f"last {walk.random.random()}", queues=QUEUES, types=TYPES):
            await store.jobs.settle([completed(job) for job in jobs])
    assert {job.status for job in await walk.jobs() if not job.finished} == set()
