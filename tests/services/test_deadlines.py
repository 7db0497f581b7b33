"""The sweep over deadlines: who is told to end, when, and who is given up."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.services.parts import claimed, one_work
from windlass import App
from windlass.core.moments import SECOND
from windlass.worker.handlers.work import Halt, Work
from windlass.worker.runner.slots import PROCESS_CANCEL_GRACE, STUCK_AFTER, THREAD_CANCEL_GRACE, Deadlines

START = 1_000 * SECOND


class Ring:
    """Slots of which there is only the list of what runs."""

    def __init__(self) -> None:
        self.active: set[Work] = set()
        self.reported: list[tuple[Work, Halt]] = []

    def halt(self, work: Work, why: Halt) -> None:
        work.halt(why)
        work.halted_on = START
        self.reported.append((work, why))


@pytest.fixture
def ring() -> Ring:
    return Ring()


def running(ring: Ring, kind: str, timeout: int | None) -> Work:
    """A handler of this kind that has just started."""
    app = App("sqlite:///never-opened.db")

    def handle() -> None: ...

    _ = app.task(type="t", run_in="process")(handle) if kind == "process" else app.task(type="t")(handle)
    work = one_work(app, msgspec.structs.replace(claimed(type="t"), timeout=timeout))
    work.started_on = START
    if kind == "async":
        work.task = asyncio.get_running_loop().create_task(asyncio.sleep(0))
    ring.active.add(work)
    return work


def deadlines(ring: Ring) -> Deadlines:
    slots: Any = ring
    return Deadlines(slots)


@pytest.mark.parametrize("kind", ["async", "thread", "process"])
async def test_time_is_over_a_timeout_after_the_start_and_not_before(ring: Ring, kind: str) -> None:
    work, sweeper = running(ring, kind, 5 * SECOND), deadlines(ring)
    assert sweeper.sweep(START + 5 * SECOND - 1) == []
    assert ring.reported == []
    sweeper.sweep(START + 5 * SECOND)
    assert ring.reported == [(work, Halt.TIMEOUT)]
    sweeper.sweep(START + 6 * SECOND)
    assert len(ring.reported) == 1, "reported twice"


@pytest.mark.parametrize("timeout", [None, 0])
async def test_without_a_timeout_nothing_is_reported(ring: Ring, timeout: int | None) -> None:
    running(ring, "async", timeout)
    assert deadlines(ring).sweep(START + 10**15) == []
    assert ring.reported == []


async def test_what_has_not_started_is_not_late(ring: Ring) -> None:
    running(ring, "process", SECOND).started_on = None
    deadlines(ring).sweep(START + 10**15)
    assert ring.reported == []


@pytest.mark.parametrize(
    ("kind", "patience"), [("async", 0), ("process", PROCESS_CANCEL_GRACE), ("thread", THREAD_CANCEL_GRACE)]
)
async def test_a_request_to_stop_is_enforced_after_the_patience_of_the_kind(
    ring: Ring, kind: str, patience: int
) -> None:
    work, sweeper = running(ring, kind, None), deadlines(ring)
    work.cancelled_on = START
    sweeper.sweep(START + patience - 1)
    assert ring.reported == []
    sweeper.sweep(START + patience)
    assert ring.reported == [(work, Halt.CANCEL)]


async def test_a_thread_is_given_up_at_once_and_only_once(ring: Ring) -> None:
    work, sweeper = running(ring, "thread", SECOND), deadlines(ring)
    assert sweeper.sweep(START + SECOND) == [work]
    assert sweeper.sweep(START + 2 * SECOND) == []


async def test_a_coroutine_has_some_time_to_clean_up_before_it_is_given_up(ring: Ring) -> None:
    work, sweeper = running(ring, "async", SECOND), deadlines(ring)
    assert sweeper.sweep(START + SECOND) == []
    assert sweeper.sweep(START + STUCK_AFTER - 1) == []
    assert sweeper.sweep(START + STUCK_AFTER) == [work]
    ring.active.clear()
    assert sweeper.sweep(START + STUCK_AFTER + 1) == []


async def test_a_process_is_never_given_up_because_it_can_be_killed(ring: Ring) -> None:
    running(ring, "process", SECOND)
    assert deadlines(ring).sweep(START + 10**15) == []


async def test_a_drain_abandons_no_job(ring: Ring) -> None:
    work = running(ring, "thread", None)
    work.halt(Halt.DRAIN)
    assert deadlines(ring).sweep(START + 10**15) == []


async def test_the_first_reason_is_kept(ring: Ring) -> None:
    work = running(ring, "thread", None)
    work.halt(Halt.CANCEL)
    work.halt(Halt.TIMEOUT)
    assert work.halted is Halt.CANCEL
