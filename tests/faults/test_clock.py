"""A wall clock that is wrong, or jumps: leases and order are unharmed, and the jump is reported."""

from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path

import pytest

from tests.e2e.conftest import stage
from tests.e2e.stage import Stage
from tests.faults import skewed
from tests.support.clock import ManualClock
from tests.support.parts import extended
from tests.support.processes import Process, let_pass, until
from tests.support.seed import LEASE, claim_ids, completed, enqueue_one, open_lease, request
from windlass.coordinator.coordinator import Coordinator
from windlass.core.events import ClockJumped, Event
from windlass.core.moments import DAY, SECOND, Micros
from windlass.observe.logs import sentence
from windlass.store.contract import Store
from windlass.store.open import open_store

__all__ = ["stage"]

HOUR = 3600 * SECOND
JUMPS = [HOUR, -HOUR, 400 * DAY, -400 * DAY]
OFFSETS = pytest.mark.parametrize("offset", JUMPS, ids=["+1 h", "-1 h", "+400 d", "-400 d"])


class WrongClock(ManualClock):
    """Another process on the same machine: the same time since boot, another idea of the date."""

    def __init__(self, right: ManualClock, offset: Micros) -> None:
        super().__init__()
        self._right, self._offset = right, offset

    def wall(self) -> Micros:
        return self._right.wall() + self._offset

    def since_boot(self) -> Micros:
        return self._right.since_boot()


@pytest.fixture
async def stores(tmp_path: Path, clock: ManualClock, offset: Micros) -> AsyncIterator[tuple[Store, Store]]:
    """The same file, as two processes see it: one with the right time, one with the wrong one."""
    url = f"sqlite:///{tmp_path}/jobs.db?durability=relaxed"
    right, wrong = open_store(url, clock=clock), open_store(url, clock=WrongClock(clock, offset))
    yield right, wrong
    await right.close()
    await wrong.close()


@OFFSETS
async def test_jobs_run_in_the_order_of_enqueue_whatever_the_clocks_of_their_producers(
    stores: tuple[Store, Store], clock: ManualClock
) -> None:
    enqueued = []
    for _, store in zip(range(20), cycle(stores), strict=False):
        clock.advance(SECOND)
        enqueued.append(await enqueue_one(store))
    await open_lease(stores[0])
    assert await claim_ids(stores[0], limit=7) == enqueued[:7]
    assert await claim_ids(stores[1]) == enqueued[7:]


@OFFSETS
async def test_a_queue_is_in_the_right_order_again_when_the_wrong_jobs_have_gone(
    stores: tuple[Store, Store], clock: ManualClock
) -> None:
    right, wrong = stores
    await open_lease(right)
    await enqueue_one(wrong)
    assert len(await claim_ids(right)) == 1
    later = [await enqueue_one(right), await enqueue_one(right, priority=1), await enqueue_one(right)]
    assert await claim_ids(right) == [later[1], later[0], later[2]]


@OFFSETS
async def test_a_wrong_clock_neither_ends_nor_prolongs_a_lease(
    stores: tuple[Store, Store], clock: ManualClock
) -> None:
    right, wrong = stores
    await open_lease(right, "r1", "w1")
    await open_lease(wrong, "r2", "w2")
    await enqueue_one(right)
    await enqueue_one(wrong)
    held = [*await right.jobs.claim(request("r1", limit=1)), *await wrong.jobs.claim(request("r2", limit=1))]
    for _ in range(3):
        clock.advance(LEASE // 3)
        assert await wrong.leases.rescue(10) == await right.leases.rescue(10) == []
        assert (await wrong.leases.renew("w2", ["r2"], LEASE)).lost == ()
        assert (await right.leases.renew("w1", ["r1"], LEASE)).lost == ()
    assert await wrong.jobs.settle([completed(job) for job in held]) == ["settled"] * 2
    # And one that is not renewed ends after its length, for both.
    for _ in range(4):
        clock.advance(LEASE // 3)
        await right.leases.renew("w1", ["r1"], LEASE)
    assert (await wrong.leases.renew("w2", ["r2"], LEASE)).lost == ("r2",)


@OFFSETS
async def test_a_jump_is_reported_once(tmp_path: Path, offset: Micros) -> None:
    clock, said = ManualClock(), list[Event]()
    store = open_store(f"sqlite:///{tmp_path}/jobs.db?durability=relaxed", clock=clock)
    coordinator = Coordinator(store, "me", said.append, clock)
    for now in (0.0, 1.0):
        clock.advance(SECOND)
        await coordinator.step(now)
    clock.jump_wall(offset)
    for now in (2.0, 3.0):
        clock.advance(SECOND)
        await coordinator.step(now)
    await store.close()
    (jump,) = [event for event in said if isinstance(event, ClockJumped)]
    assert jump.seconds == offset / SECOND
    assert f"{'forwards' if offset > 0 else 'back'} by {abs(offset) // SECOND} s" in sentence(jump)[1]


async def test_a_clock_that_drifts_is_not_reported(tmp_path: Path) -> None:
    clock, said = ManualClock(), list[Event]()
    store = open_store(f"sqlite:///{tmp_path}/jobs.db?durability=relaxed", clock=clock)
    coordinator = Coordinator(store, "me", said.append, clock)
    for now in range(20):
        clock.advance(SECOND)
        clock.jump_wall(SECOND)
        await coordinator.step(float(now))
    await store.close()
    assert not any(isinstance(event, ClockJumped) for event in said)


def skewed_worker(stage: Stage, offset: Path) -> Process:
    """A worker, and its runners, that read their clock's error from a file."""
    words = ("worker", "shop:app", "--lease", "1s", "--concurrency", "3")
    process = stage.processes.start("skewed", skewed.__file__, str(offset), *words)
    stage.workers.append(process)
    stage.until_ready(process)
    return process


@pytest.mark.parametrize("seconds", [400 * 86_400, *extended([-400 * 86_400])], ids=["+400 d", "-400 d"])
def test_a_worker_with_a_wrong_clock_keeps_its_jobs_and_takes_no_others(stage: Stage, seconds: int) -> None:
    stage.worker("--concurrency", "3", lease="1s")
    running = [*stage.enqueue("block", 2, gate="gate"), *stage.enqueue("ablock", 1, gate="gate")]
    stage.until_started(running)
    (stage.folder / "offset").write_text(str(seconds))
    wrong = skewed_worker(stage, stage.folder / "offset")
    wrongly = stage.enqueue("block", 3, gate="gate")
    stage.until_started(wrongly)
    let_pass(2.5)
    stage.open("gate")
    stage.enqueue("quick", 50)
    stage.until_finished()
    assert {effect.pid for id_ in wrongly for effect in stage.history.starts(id_)} == {wrong.runner()}
    assert {stage.job(id_).attempt for id_ in stage.ids} == {1}
    stage.check()
    stage.close_down()


def test_a_jump_while_a_worker_runs_is_reported_and_harms_nothing(stage: Stage) -> None:
    offset = stage.folder / "offset"
    offset.write_text("0")
    worker = skewed_worker(stage, offset)
    running = [*stage.enqueue("block", 1, gate="gate"), *stage.enqueue("ablock", 1, gate="gate")]
    stage.until_started(running)
    for seconds, said in [(3600, "forwards by 3600 s"), (-34_560_000, "back by 34563600 s"), (0, "forwards by 345")]:
        (stage.folder / "new").write_text(str(seconds))
        (stage.folder / "new").rename(offset)
        until(lambda said=said: said in worker.output, f"the jump is reported: {said}")  # type: ignore[misc]
        stage.enqueue("quick", 10)
    let_pass(1.5)
    assert [(job.status, job.attempt) for job in map(stage.job, running)] == [("running", 1)] * 2
    stage.open("gate")
    stage.until_finished()
    stage.check()
    stage.close_down()
