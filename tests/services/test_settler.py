"""The settler: every outcome reaches the store, however often that takes."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from tests.services.parts import Flaky, Listener, one_work
from tests.support.seed import completed, enqueue, failed, nothing, open_lease, request
from windlass import App, SchemaMismatch, Status
from windlass.core.events import AttemptEnded, ResultNotKept, StaleWrite
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed, JobError
from windlass.core.jobs.outcome import Settlement
from windlass.observe.logs import sentence
from windlass.store.contract import Store
from windlass.store.records import RowsHeld, Settled
from windlass.worker.handlers.work import Work
from windlass.worker.runner import write_delays
from windlass.worker.runner.settler import MAX_IN_BATCH, MAX_TRIES, Settler, attempt_ended


class Bench:
    """A settler over a store that may fail, and jobs to settle."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.listener = Listener()
        self.done: list[Work] = []
        self.app = App("sqlite:///never-opened.db")
        self.app.task(type="t")(nothing)

    def settler(self, *failures: str, verbose: bool = False) -> Settler:
        role: Any = Flaky(self.store.jobs, "settle", failures)
        self.role = role
        made = Settler(role, self.listener, self.done.extend, lambda: False, verbose=verbose)
        made.runner = "r1"
        return made

    async def claim(self, jobs: int) -> list[Claimed]:
        await open_lease(self.store)
        await enqueue(self.store, jobs)
        claimed: list[Claimed] = []
        while len(claimed) < jobs:
            claimed += await self.store.jobs.claim(request(most=jobs, limit=jobs))
        return claimed

    async def settle(self, settler: Settler) -> None:
        """Run until all is written."""
        running = asyncio.create_task(settler.run())
        quiet = asyncio.create_task(settler.quiet.wait())
        await asyncio.wait([running, quiet], return_when=asyncio.FIRST_COMPLETED, timeout=30)
        quiet.cancel()
        if running.done():
            running.result()
        running.cancel()


@pytest.fixture
def bench(store: Store) -> Bench:
    """On every store."""
    return Bench(store)


async def test_outcomes_are_written_and_then_let_go(bench: Bench) -> None:
    settler = bench.settler()
    works = [one_work(bench.app, job) for job in await bench.claim(3)]
    for work in works:
        settler.add(work, completed(work.claimed))
    assert (settler.backlog, settler.quiet.is_set()) == (3, False)
    await bench.settle(settler)
    assert (settler.backlog, bench.done) == (0, works)
    assert (await bench.store.operator.counts()).totals["completed"] == 3


@pytest.mark.parametrize("failure", ["before", "after"])
async def test_a_write_is_repeated_until_it_is_answered_and_nothing_is_lost(bench: Bench, failure: str) -> None:
    settler = bench.settler(failure, failure, failure)
    works = [one_work(bench.app, job) for job in await bench.claim(3)]
    for work in works:
        settler.add(work, completed(work.claimed))
    await bench.settle(settler)
    assert len(bench.role.asked) == 4
    assert bench.done == works
    assert (await bench.store.operator.counts()).totals["completed"] == 3
    assert bench.listener.names == ["StoreFailed", "StoreRecovered"]


async def test_what_comes_while_the_store_is_away_is_written_too(bench: Bench) -> None:
    settler = bench.settler("before", "before")
    jobs = await bench.claim(2 * MAX_IN_BATCH)
    first, rest = jobs[0], jobs[1:]
    settler.add(one_work(bench.app, first), completed(first))
    running = asyncio.create_task(settler.run())
    await asyncio.sleep(0)
    for job in rest:
        settler.add(one_work(bench.app, job), completed(job))
    async with asyncio.timeout(30):
        await settler.quiet.wait()
    running.cancel()
    assert (await bench.store.operator.counts()).totals["completed"] == 2 * MAX_IN_BATCH
    assert max(len(batch) for batch in bench.role.asked) <= MAX_IN_BATCH


async def test_a_stale_outcome_is_reported_and_let_go(bench: Bench) -> None:
    settler = bench.settler()
    (job,) = await bench.claim(1)
    await bench.store.jobs.settle([failed(job)])
    settler.add(one_work(bench.app, job), completed(job))
    await bench.settle(settler)
    assert bench.listener.heard == [StaleWrite(job=job.id, attempt=1, worker="r1", found="completed")]
    assert len(bench.done) == 1
    assert (await bench.store.operator.counts()).totals["failed"] == 1


@pytest.mark.parametrize(("verbose", "events"), [(False, ["AttemptEnded"]), (True, ["AttemptEnded", "AttemptEnded"])])
async def test_failures_are_reported_and_completions_when_asked_for(
    bench: Bench, verbose: bool, events: list[str]
) -> None:
    settler = bench.settler(verbose=verbose)
    first, second = await bench.claim(2)
    settler.add(one_work(bench.app, first), completed(first))
    settler.add(one_work(bench.app, second), failed(second, "no luck"))
    await bench.settle(settler)
    assert bench.listener.names == events
    reported = bench.listener.heard[-1]
    assert isinstance(reported, AttemptEnded)
    assert (reported.status, reported.error, reported.wait) == (Status.FAILED, "ValueError: no luck", 60)


async def test_a_result_that_was_not_kept_is_logged(bench: Bench) -> None:
    settler = bench.settler()
    (job,) = await bench.claim(1)
    lost = msgspec.structs.replace(completed(job), result='{"unstorable_result":"is too large"}')
    settler.add(one_work(bench.app, job), lost)
    await bench.settle(settler)
    (event,) = bench.listener.heard
    assert event == ResultNotKept(job=job.id, type=job.type, attempt=1, worker="r1", problem="is too large")
    level, text = sentence(event)
    assert (level, text.endswith("completed, but its result was not kept: is too large")) == (logging.WARNING, True)


async def test_a_schema_that_is_too_new_ends_the_settler(bench: Bench) -> None:
    settler = bench.settler()

    async def settle(settlements: Any) -> Any:
        raise SchemaMismatch("too new")

    bench.role.__dict__["settle"] = settle
    (job,) = await bench.claim(1)
    settler.add(one_work(bench.app, job), completed(job))
    with pytest.raises(SchemaMismatch):
        await bench.settle(settler)
    assert (bench.done, settler.backlog) == ([], 1)


async def _until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not look():  # noqa: ASYNC110 - the settler gives no signal
            await asyncio.sleep(0)


class Locked:
    """The verb `settle` of a store some of whose rows another transaction holds, until it ends."""

    def __init__(self, bench: Bench, held: set[JobId]) -> None:
        self._bench = bench
        self.held = held
        self.asked: list[int] = []

    async def __call__(self, settlements: Sequence[Settlement]) -> list[Settled]:
        self.asked.append(len(settlements))
        await asyncio.sleep(0)
        if self.held.intersection(each.id for each in settlements):
            raise RowsHeld("held")
        return await self._bench.store.jobs.settle(settlements)


async def test_what_another_transaction_holds_is_found_tried_alone_and_reported_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_delays, "MIN_HELD", 0.01)
    monkeypatch.setattr(write_delays, "MAX_HELD", 0.02)
    settler = bench.settler()
    jobs = await bench.claim(16)
    locked = bench.role.__dict__["settle"] = Locked(bench, {jobs[5].id})
    for job in jobs:
        settler.add(one_work(bench.app, job), completed(job))
    running = asyncio.create_task(settler.run())
    await _until(lambda: len(locked.asked) >= 12)
    assert settler.backlog == 1
    assert locked.asked[:9] == [16, 8, 4, 4, 2, 1, 1, 2, 8], "divided once"
    assert set(locked.asked[9:]) == {1}, "then it is tried alone"
    locked.held.clear()
    async with asyncio.timeout(30):
        await settler.quiet.wait()
    running.cancel()
    assert bench.listener.names == ["StoreFailed", "StoreRecovered"]
    assert (await bench.store.operator.counts()).totals["completed"] == 16


async def test_a_batch_all_of_which_is_held_is_not_divided_to_the_end(bench: Bench) -> None:
    settler = bench.settler()
    jobs = await bench.claim(200)
    locked = bench.role.__dict__["settle"] = Locked(bench, {job.id for job in jobs})
    for job in jobs:
        settler.add(one_work(bench.app, job), completed(job))
    running = asyncio.create_task(settler.run())
    await _until(lambda: settler.writing)
    await _until(lambda: not settler.writing)
    assert len(locked.asked) <= 2 * MAX_TRIES
    locked.held.clear()
    async with asyncio.timeout(60):
        await settler.quiet.wait()
    running.cancel()
    assert (await bench.store.operator.counts()).totals["completed"] == 200


def test_news_of_an_end_say_once_why() -> None:
    end = Settlement(id="x", queue="q", attempt=1, status=Status.DEAD, outcome="dead", reason="hopeless")
    same = msgspec.structs.replace(end, error=JobError("windlass.Dead", "hopeless"))
    assert attempt_ended(same, "t", "r", None).error == "windlass.Dead: hopeless"
    other = msgspec.structs.replace(end, error=JobError("ValueError", "no"), reason="failed 3 of 3 attempts")
    assert attempt_ended(other, "t", "r", None).error == "ValueError: no; failed 3 of 3 attempts"
    assert attempt_ended(end, "t", "r", None).error == "hopeless"
