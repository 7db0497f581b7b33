"""Walks through chains that cross queues: after every step all jobs stand as they do on SQLite."""

import random
from collections.abc import Awaitable, Callable

import pytest

from tests.support.clock import ManualClock
from tests.support.parts import extended
from tests.support.seed import cancelled, completed, dead, failed, new_job, open_lease, request
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT
from windlass.core.jobs.job import Claimed, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND
from windlass.core.status import FINISHED, Status
from windlass.store.contract import Store
from windlass.store.open import open_memory

QUEUES = ("default", "other", "third")
STEPS = 60
Step = Callable[[Store], Awaitable[object]]


def family(chance: random.Random, elders: list[JobId], most: int) -> list[NewJob]:
    """Jobs of which some wait for others, up to so many each: of this enqueue, or of one before."""
    jobs: list[NewJob] = []
    for _ in range(chance.randint(1, 6)):
        known = [job.id for job in jobs] + elders[-8:]
        parents = tuple(chance.sample(known, min(len(known), chance.choice((0, *range(1, most + 1), 1)))))
        takes = tuple((f"p{n}", parent) for n, parent in enumerate(parents) if chance.random() < 0.7)
        key = chance.choice((None, None, None, "k"))
        queue = chance.choice(QUEUES)
        jobs.append(
            new_job(
                queue=queue,
                parents=parents,
                result_params=takes,
                concurrency_key=key,
                delay=chance.choice((0, 0, SECOND)),
            )
        )
    return jobs


class Walk:
    """One step after the other, each on both stores."""

    def __init__(self, seed: int, clock: ManualClock, stores: list[Store], most_parents: int = 1) -> None:
        self.most_parents = most_parents
        self.chance = random.Random(seed)
        self.clock = clock
        self.stores = stores
        self.ids: list[JobId] = []
        self.claims = 0

    async def step(self) -> str:
        name, act = self.chance.choice(
            [
                ("enqueue", self.enqueue),
                *[("run", self.run)] * 4,
                ("cancel", self.cancel),
                ("retry", self.retry),
                ("delete", self.delete),
                ("move", self.move),
            ]
        )
        await act()
        self.clock.advance(SECOND)
        for store in self.stores:
            await store.jobs.admit(1000)
        return name

    async def enqueue(self) -> None:
        jobs = family(self.chance, [id_ for id_ in self.ids if await self.is_known(id_)], self.most_parents)
        for store in self.stores:
            await store.jobs.enqueue(jobs)
        self.ids += [job.id for job in jobs]

    async def is_known(self, id_: JobId) -> bool:
        return (await self.stores[0].operator.get([id_]))[0] is not None

    async def run(self) -> None:
        """One job of one queue: the same on both, and with the same from its parents."""
        queue, ending = self.chance.choice(QUEUES), self.chance.choice(ENDINGS)
        self.claims += 1
        taken: list[list[Claimed]] = []
        for store in self.stores:
            runner = await open_lease(store, f"r{self.claims}", f"w{self.claims}")
            jobs = await store.jobs.claim(request(runner, queues=(queue,), most=1, limit=1))
            await store.jobs.settle([ending(job) for job in jobs])
            taken.append(jobs)
        assert len({tuple((job.id, job.parent_results) for job in jobs) for jobs in taken}) == 1

    async def cancel(self) -> None:
        await self.on_one(lambda store, id_: store.operator.cancel([id_], "enough"))

    async def retry(self) -> None:
        await self.on_one(lambda store, id_: store.operator.retry([id_]))

    async def delete(self) -> None:
        await self.on_one(lambda store, id_: store.operator.delete([id_]))

    async def move(self) -> None:
        queue = self.chance.choice(QUEUES)
        await self.on_one(lambda store, id_: store.operator.change([id_], JobChange(queue=queue)))

    async def on_one(self, act: Callable[[Store, JobId], Awaitable[object]]) -> None:
        if self.ids:
            id_ = self.chance.choice(self.ids)
            answers = [str(await act(store, id_)) for store in self.stores]
            assert len(set(answers)) == 1

    async def jobs(self, store: Store) -> list[tuple[str, str] | None]:
        return [None if job is None else (job.queue, str(job.status)) for job in await store.operator.get(self.ids)]


ENDINGS: list[Callable[[Claimed], Settlement]] = [completed, completed, completed, dead, failed, cancelled]


@pytest.mark.parametrize("seed", [0, 1, *extended(range(2, 12))])
async def test_all_jobs_are_in_the_same_state_as_on_sqlite(store: Store, clock: ManualClock, seed: int) -> None:
    reference = open_memory(clock=clock)
    walk = Walk(seed, clock, [reference, store])
    steps: list[str] = []
    for _ in range(STEPS):
        steps.append(await walk.step())
        found, expected = await walk.jobs(store), await walk.jobs(reference)
        differing = {id_: both for id_, *both in zip(walk.ids, found, expected, strict=True) if both[0] != both[1]}
        assert not differing, steps
    await reference.close()


@pytest.mark.parametrize("seed", [0, 1, *extended(range(2, 8))])
async def test_no_job_waits_for_a_parent_that_will_not_complete(store: Store, clock: ManualClock, seed: int) -> None:
    """Of several parents, in any queue: a job that waits has one that lives, and none that ended badly."""
    walk = Walk(seed, clock, [store], most_parents=3)
    for _ in range(STEPS):
        step = await walk.step()
        jobs = {job.id: job for job in await store.operator.get(walk.ids) if job}
        for job in jobs.values():
            if job.reason != WAITING_FOR_PARENT:
                continue
            ends = [jobs[parent].status for parent in job.parents if parent in jobs]
            assert not {Status.DEAD, Status.CANCELLED}.intersection(ends), step
            assert any(status not in FINISHED for status in ends), step
