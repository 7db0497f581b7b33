"""Slots: what runs, how many at once, and under which lease."""

import asyncio
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import msgspec
import pytest

from tests.services.parts import MINUTE, Outcomes, claimed, table_of, work_of
from windlass import App, Task
from windlass.core.events import silent
from windlass.core.jobs.outcome import Done, Raised
from windlass.core.jobs.retry import Exponential
from windlass.core.moments import SECOND
from windlass.store.clock import since_boot
from windlass.worker.config import WorkerConfig
from windlass.worker.handlers.process_pool import HandlerProcessPool
from windlass.worker.handlers.work import Halt
from windlass.worker.runner.slots import Deadlines, Slots
from windlass.worker.shared_table import SharedTable, State


class Gate:
    """Handlers wait here; how many did so at once is counted."""

    def __init__(self) -> None:
        self.inside = self.most = self.entered = 0
        self._guard = threading.Lock()

    def enter(self) -> None:
        with self._guard:
            self.inside += 1
            self.entered += 1
            self.most = max(self.most, self.inside)

    def leave(self) -> None:
        with self._guard:
            self.inside -= 1


class Workshop:
    """An app with one handler of each kind, and a table for what is held."""

    def __init__(self, table: SharedTable) -> None:
        self.app = App("sqlite:///never-opened.db")
        self.table = table
        self.gate = Gate()
        self.outcomes = Outcomes()
        self.asked = threading.Event()
        self.aasked = asyncio.Event()

        @self.app.task(type="a")
        async def waits(number: int) -> int:
            self.gate.enter()
            await self.aasked.wait()
            self.gate.leave()
            return number

        @self.app.task(type="d")
        def blocks(number: int) -> int:
            self.gate.enter()
            self.asked.wait(10)
            self.gate.leave()
            return number

        self.a: Task[[int], Any, int] = waits
        self.d: Task[[int], Any, int] = blocks

    def slots(self, concurrency: int) -> Slots:
        cells = HandlerProcessPool(WorkerConfig(app="nowhere:app"))
        return Slots(concurrency, self.table, cells, retry=lambda _: Exponential(), ended=self.outcomes, emit=silent)

    def let_go(self) -> None:
        self.asked.set()
        self.aasked.set()

    async def entered(self, handlers: int) -> None:
        """Until so many handlers have begun; loops because threads do not report when they begin."""
        async with asyncio.timeout(10):
            while self.gate.entered < handlers:  # noqa: ASYNC110
                await asyncio.sleep(0)


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    """Made on no loop, used on the test's."""
    with table_of() as table:
        yield Workshop(table)


@pytest.mark.parametrize("kinds", ["a", "d", "ad", "aad", "dda"])
async def test_never_more_run_at_once_than_there_are_slots(workshop: Workshop, kinds: str) -> None:
    slots = workshop.slots(3)
    tasks = [workshop.a if kinds[number % len(kinds)] == "a" else workshop.d for number in range(12)]
    slots.add([work_of(workshop.app, workshop.table, task.job(n)) for n, task in enumerate(tasks)])
    await workshop.entered(3)
    assert (slots.running, slots.buffered, workshop.gate.inside) == (3, 9, 3)
    workshop.let_go()
    await slots.idle()
    assert (workshop.gate.entered, workshop.gate.most, slots.ended, slots.buffered) == (12, 3, 12, 0)
    assert sorted(_result(outcome) for _, outcome in workshop.outcomes.all) == sorted(map(str, range(12)))


def _result(outcome: object) -> str:
    assert isinstance(outcome, Done)
    assert outcome.result is not None
    return outcome.result


async def test_jobs_start_in_the_order_in_which_they_came(workshop: Workshop) -> None:
    workshop.let_go()
    slots = workshop.slots(1)
    slots.add([work_of(workshop.app, workshop.table, workshop.a.job(number)) for number in range(5)])
    await slots.idle()
    assert [_result(outcome) for _, outcome in workshop.outcomes.all] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("kind", ["a", "d"])
async def test_nothing_starts_under_a_lease_that_is_over(workshop: Workshop, kind: str) -> None:
    workshop.let_go()
    workshop.table.valid_until = since_boot() - 1
    slots = workshop.slots(2)
    slots.add([work_of(workshop.app, workshop.table, getattr(workshop, kind).job(1))])
    slots.feed()
    assert (slots.running, slots.buffered) == (0, 1)
    assert [entry.state for entry in workshop.table.held()] == [State.PREFETCHED]
    workshop.table.valid_until = since_boot() + MINUTE
    slots.feed()
    await slots.idle()
    assert workshop.outcomes.kinds == ["Done"]


async def test_no_next_job_starts_when_the_lease_is_over(workshop: Workshop) -> None:
    slots = workshop.slots(1)
    slots.add([work_of(workshop.app, workshop.table, workshop.a.job(number)) for number in range(2)])
    await workshop.entered(1)
    workshop.table.valid_until = 0
    workshop.let_go()
    await slots.idle()
    assert (workshop.gate.entered, slots.buffered) == (1, 1)


async def test_what_the_supervisor_took_is_not_started(workshop: Workshop) -> None:
    workshop.let_go()
    slots = workshop.slots(5)
    works = [work_of(workshop.app, workshop.table, workshop.a.job(number)) for number in range(3)]
    workshop.table.take(works[1].index)
    slots.add(works)
    await slots.idle()
    assert [work for work, _ in workshop.outcomes.all] == [works[0], works[2]]
    assert slots.taken_away() == [works[1]]
    assert slots.taken_away() == []


async def test_what_has_not_started_can_be_taken_back(workshop: Workshop) -> None:
    slots = workshop.slots(1)
    works = [work_of(workshop.app, workshop.table, workshop.a.job(number)) for number in range(3)]
    slots.add(works)
    assert slots.oldest is works[1]
    assert slots.take_unstarted() == works[1:]
    assert slots.buffered == 0
    workshop.let_go()
    await slots.idle()
    assert workshop.gate.entered == 1


async def test_an_async_handler_that_is_cancelled_is_requeued(workshop: Workshop) -> None:
    slots = workshop.slots(2)
    works = [work_of(workshop.app, workshop.table, workshop.a.job(number)) for number in range(2)]
    slots.add(works)
    await workshop.entered(2)
    slots.halt(works[0], Halt.DRAIN)
    workshop.aasked.set()
    await slots.idle()
    kinds = {work.claimed.id: type(outcome).__name__ for work, outcome in workshop.outcomes.all}
    assert kinds == {works[0].claimed.id: "Requeued", works[1].claimed.id: "Done"}


ENDINGS = [
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    TimeoutError,
    MemoryError,
    RecursionError,
]


@pytest.mark.parametrize("error", ENDINGS)
@pytest.mark.parametrize("kind", ["async", "def"])
async def test_a_slot_survives_whatever_a_handler_raises(
    workshop: Workshop, kind: str, error: type[BaseException]
) -> None:
    workshop.let_go()

    async def fail_async() -> None:
        raise error

    def fail_sync() -> None:
        raise error

    handler: Any = fail_async if kind == "async" else fail_sync
    bad = workshop.app.task(type="bad")(handler)
    slots = workshop.slots(1)
    good = workshop.a if kind == "async" else workshop.d
    slots.add([work_of(workshop.app, workshop.table, job) for job in (bad.job(), good.job(1))])
    await slots.idle()
    failed = workshop.outcomes.all[0][1]
    assert isinstance(failed, Raised)
    assert type(failed.error) is error
    assert (workshop.outcomes.kinds, slots.running) == (["Raised", "Done"], 0)


async def test_the_table_tells_what_runs_and_what_has_ended(workshop: Workshop) -> None:
    slots = workshop.slots(1)
    slots.add([work_of(workshop.app, workshop.table, workshop.d.job(number)) for number in range(2)])
    await workshop.entered(1)
    assert sorted(entry.state for entry in workshop.table.held()) == [State.PREFETCHED, State.STARTED]
    workshop.let_go()
    await slots.idle()
    assert [entry.state for entry in workshop.table.held()] == [State.ENDED, State.ENDED]


async def test_threads_are_used_again(workshop: Workshop) -> None:
    workshop.let_go()
    before = _threads()
    slots = workshop.slots(2)
    for number in range(20):
        slots.add([work_of(workshop.app, workshop.table, workshop.d.job(number))])
        await slots.idle()
    assert 1 <= len(_threads() - before) <= 2
    assert slots.ended == 20


def _threads() -> set[int]:
    return {id(thread) for thread in threading.enumerate() if thread.name.startswith("windlass-slot")}


async def test_a_def_job_finds_no_context_variable_of_the_one_before_on_its_thread(workshop: Workshop) -> None:
    var: ContextVar[int] = ContextVar("var")
    threads: set[int] = set()

    @workshop.app.task(type="set")
    def put(number: int) -> bool:
        threads.add(threading.get_ident())
        found = var.get(None) is not None
        var.set(number)
        return found

    slots = workshop.slots(1)
    slots.add([work_of(workshop.app, workshop.table, put.job(number)) for number in range(5)])
    await slots.idle()
    assert [_result(outcome) for _, outcome in workshop.outcomes.all] == ["false"] * 5
    assert len(threads) == 1


async def test_without_a_thread_to_be_had_a_job_waits_unstarted_and_others_use_those_there_are(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    slots, works = workshop.slots(3), [work_of(workshop.app, workshop.table, workshop.d.job(n)) for n in range(4)]
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        slots.add(works[:1])
        assert (slots.running, slots.buffered, works[0].started_on) == (0, 1, None)
    slots.feed()
    await workshop.entered(1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        slots.add(works[1:])
        assert (slots.running, slots.buffered) == (1, 3)
        workshop.let_go()
        async with asyncio.timeout(10):
            await slots.idle()
    assert workshop.outcomes.kinds == ["Done"] * 4


async def test_the_time_of_a_handler_does_not_run_while_the_worker_is_stopped(
    workshop: Workshop,
) -> None:
    """Before its start too: a night of an earlier day takes nothing from it."""
    start, timeout = since_boot(), 5 * SECOND
    night = start // 4  # as long as a sleep can have been, whenever this machine was started
    workshop.table.keep_time(start - night)
    workshop.table.keep_time(start)
    work = work_of(workshop.app, workshop.table, msgspec.structs.replace(claimed(workshop.a.job(1)), timeout=timeout))
    slots = workshop.slots(1)
    sweeper = Deadlines(slots)
    slots.add([work])
    began = work.started_on
    assert began is not None
    table = workshop.table
    sweeper.sweep(table.active_time(began + night))
    halts = [work.halted]
    for moment in range(began + night, began + night + timeout + SECOND, SECOND // 4):
        table.keep_time(moment)
    sweeper.sweep(table.active_time(began + night + timeout + SECOND))
    assert [*halts, work.halted] == [None, Halt.TIMEOUT]
    workshop.let_go()
    await slots.idle()
