"""The runner's meters: every ending is counted, and nothing of it is in the way of the jobs."""

import asyncio
from typing import Any

import pytest

from tests.services.parts import Flaky, Listener, one_work
from tests.support.seed import ENDINGS, completed, new_job, nothing, open_lease, request
from windlass import App
from windlass.core.jobs.job import Claimed
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import SECOND
from windlass.core.stats.meter import Meter
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Settled
from windlass.worker.handlers.work import Work
from windlass.worker.runner.meters import SAMPLE, Meters
from windlass.worker.runner.settler import Settler


class Rig:
    """Meters over a store that may fail, and attempts that took a given time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.listener = Listener()
        self.role: Any = Flaky(store.stats, "record", [])
        self.meters = Meters(self.role, self.listener)
        self.app = App("sqlite:///never-opened.db")
        for type_ in ("t", "rare"):
            self.app.task(type=type_)(nothing)

    def ended(self, type_: str = "t", *, wait: int = SECOND, run: int = SECOND) -> Work:
        """One that was claimed after nine tenths of its wait, and started after the rest of it."""
        due, held = 1000 * SECOND, wait // 10
        job = Claimed("id", "default", type_, "{}", 1, 3, 0, 0, 0, 0, 0, 0, 0, due, due - 5, due + wait - held)
        work = one_work(self.app, job)
        work.started_on = work.claimed_on + held
        work.ended_on = work.started_on + run
        return work

    def measure(self, works: list[Work], ending: Any = completed, answer: Settled = Settled.SETTLED) -> None:
        self.meters.measure([(work, ending(work.claimed)) for work in works], [answer] * len(works))

    async def flushed(self) -> dict[str, Meter]:
        await self.meters.flush()
        return {each.type: each for each in (await self.store.stats.recent(60 * SECOND)).meters}


@pytest.fixture
def rig(store: Store) -> Rig:
    """On every store."""
    return Rig(store)


@pytest.mark.parametrize("ending", ["completed", "failed", "dead", "cancelled", "snoozed"])
async def test_every_ending_is_counted_under_its_own_name(rig: Rig, ending: str) -> None:
    rig.measure([rig.ended(), rig.ended()], ENDINGS[ending])
    meter = (await rig.flushed())["t"]
    assert (getattr(meter, ending), meter.ended) == (2, 2)


async def test_a_crash_that_is_tried_again_is_counted_as_one(rig: Rig) -> None:
    def crashed(job: Claimed) -> Settlement:
        return Settlement(id=job.id, queue=job.queue, attempt=1, status=Status.PENDING, outcome="crashed", crashes=1)

    rig.measure([rig.ended()], crashed)
    assert (await rig.flushed())["t"].crashed == 1


async def test_what_was_requeued_or_came_too_late_is_not_counted(rig: Rig) -> None:
    unstarted = one_work(rig.app, new_job())
    rig.measure([unstarted], ENDINGS["requeued"])
    rig.measure([rig.ended()], answer=Settled.STALE)
    assert await rig.flushed() == {}
    assert rig.role.asked == [], "nothing to record, nothing written"


async def test_a_settlement_that_was_repeated_is_counted_once(rig: Rig) -> None:
    rig.measure([rig.ended()], answer=Settled.ALREADY)
    assert (await rig.flushed())["t"].completed == 1


async def test_the_wait_is_from_when_a_job_was_due_to_its_start_and_the_run_is_the_handlers(rig: Rig) -> None:
    rig.measure([rig.ended(wait=100 * SECOND, run=3 * SECOND)])
    meter = (await rig.flushed())["t"]
    assert meter.wait.quantile(0.5) == pytest.approx(100 * SECOND, rel=1 / 16)
    assert meter.run.quantile(0.5) == pytest.approx(3 * SECOND, rel=1 / 16)


async def test_of_many_alike_a_sample_is_measured_and_all_are_counted(rig: Rig) -> None:
    many = 10 * SAMPLE
    rig.measure([*(rig.ended() for _ in range(many)), rig.ended("rare", run=60 * SECOND)])
    meters = await rig.flushed()
    assert (meters["t"].completed, meters["t"].run.count) == (many, many), "each measured one represents ten"
    assert (meters["rare"].completed, meters["rare"].run.count) == (1, 1), "and what is rare is never left out"


async def test_what_has_gathered_is_enqueued_once(rig: Rig) -> None:
    rig.measure([rig.ended()])
    await rig.meters.flush()
    await rig.meters.flush()
    assert len(rig.role.asked) == 1


async def test_a_store_that_is_away_costs_statistics_and_nothing_else(rig: Rig) -> None:
    rig.role = Flaky(rig.store.stats, "record", ["before"])
    rig.meters = Meters(rig.role, rig.listener)
    rig.measure([rig.ended()])
    assert await rig.flushed() == {}
    assert rig.listener.names == ["StoreFailed"]
    rig.measure([rig.ended()])
    assert (await rig.flushed())["t"].completed == 1


async def test_the_settler_has_what_it_wrote_measured(rig: Rig) -> None:
    await open_lease(rig.store)
    await rig.store.jobs.enqueue([new_job() for _ in range(3)])
    settler = Settler(
        rig.store.jobs, rig.listener, lambda work: None, lambda: False, verbose=False, measure=rig.meters.measure
    )
    for job in await rig.store.jobs.claim(request()):
        work = one_work(rig.app, job)
        work.started_on = work.ended_on = work.claimed_on
        settler.add(work, completed(job))
    running = asyncio.create_task(settler.run())
    async with asyncio.timeout(30):
        await settler.quiet.wait()
    running.cancel()
    assert (await rig.flushed())["t"].completed == 3
