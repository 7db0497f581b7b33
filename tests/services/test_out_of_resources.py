"""Handlers' own processes where processes, threads, descriptors or memory are scarce: no job is charged for that."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from tests.services.parts import Listener, Outcomes, claimed, one_work, table_of, work_of
from windlass import App, Status
from windlass.core.events import StoreFailed
from windlass.core.jobs.outcome import NotRun, Policy, Raised, decide
from windlass.core.jobs.retry import Exponential
from windlass.worker.config import WorkerConfig
from windlass.worker.handlers import process, process_pool
from windlass.worker.handlers.process import HandlerProcess, HandlerProcessFailed
from windlass.worker.handlers.process_pool import HandlerProcessPool
from windlass.worker.processes import UNKNOWN, code_of_ended, kill_marked
from windlass.worker.runner.slots import Slots

NO_PROCESS = BlockingIOError(11, "Resource temporarily unavailable")
NO_DESCRIPTOR = OSError(24, "Too many open files")
NO_THREAD = RuntimeError("can't start new thread")
SHORT_PAUSE = 0.001


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (process_pool, process):
        monkeypatch.setattr(module, "OUT_OF_RESOURCES_PAUSE", SHORT_PAUSE)


@pytest.fixture
def app() -> App:
    app = App("sqlite:///never-opened.db")

    @app.task(type="apart", run_in="process")
    def apart(number: int) -> int:
        return number

    return app


def refusing(error: BaseException) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    return refuse


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("asyncio.create_subprocess_exec", NO_PROCESS),
        ("asyncio.create_subprocess_exec", MemoryError()),
        ("socket.socketpair", NO_DESCRIPTOR),
        ("os.pipe", NO_DESCRIPTOR),
        ("windlass.worker.handlers.process._kill_thread.submit", NO_THREAD),
    ],
)
async def test_a_job_for_which_no_process_can_be_started_is_not_run_and_that_is_reported_once(
    app: App, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    outcomes, listener = Outcomes(), Listener()
    with table_of() as table, monkeypatch.context() as patch:
        patch.setattr(step, refusing(error))
        apart = HandlerProcessPool(WorkerConfig(app="nowhere:app"), emit=listener)
        slots = Slots(1, table, apart, retry=lambda _: Exponential(), ended=outcomes, emit=listener)
        slots.add([work_of(app, table, claimed(type="apart")) for _ in range(3)])
        async with asyncio.timeout(20):
            await slots.idle()
    assert outcomes.kinds == ["NotRun"] * 3
    (reported,) = listener.heard
    assert isinstance(reported, StoreFailed)
    assert reported.doing == "starting a process for a handler"


def test_a_job_that_was_not_run_is_pending_again_and_charged_with_nothing() -> None:
    job = msgspec.structs.replace(claimed(), max_attempts=1)
    settlement = decide(job, NotRun(), Policy(Exponential()), Random())
    assert (settlement.status, settlement.requeues) == (Status.PENDING, 1)
    assert settlement.failures == settlement.crashes == 0


@pytest.mark.parametrize("error", [NO_DESCRIPTOR, NO_THREAD, MemoryError()])
async def test_what_a_process_left_is_looked_for_until_that_succeeds_and_its_outcome_is_kept(
    app: App, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """An outcome that was heard is not replaced by a failure to clear up after it."""
    looked: list[str] = []

    def look(mark: str) -> None:
        looked.append(mark)
        if len(looked) < 3:
            raise error

    monkeypatch.setattr(process, "kill_marked", look)
    apart = HandlerProcessPool(WorkerConfig(app="nowhere:app"))
    outcome = await apart.run(one_work(app, claimed(type="apart")), Exponential(), lambda _: None)
    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, HandlerProcessFailed)
    assert len(looked) == 3


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A system that has no descriptor to read the environment of a process."""

    def read(_: Path) -> bytes:
        raise NO_DESCRIPTOR

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", read)
        yield


@pytest.mark.usefixtures("marked")
def test_a_process_that_cannot_be_looked_at_is_not_taken_for_a_stranger() -> None:
    with pytest.raises(OSError, match="Too many open files"):
        kill_marked("WINDLASS_HANDLER_PROCESS=none.")


def test_processes_that_cannot_be_listed_are_not_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("os.listdir", refusing(NO_DESCRIPTOR))
        with pytest.raises(OSError, match="Too many open files"):
            kill_marked("WINDLASS_HANDLER_PROCESS=none.")


async def test_a_start_that_fails_leaves_no_descriptor_open(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr("asyncio.open_connection", refusing(NO_DESCRIPTOR))
        with pytest.raises(OSError, match="Too many"):
            await HandlerProcess.start(WorkerConfig(app="nowhere:app"), "mark")
    await asyncio.sleep(0)  # a transport closes with the next turn of the loop
    await asyncio.sleep(0)
    assert set(os.listdir("/proc/self/fd")) == before


async def test_the_end_of_a_process_is_noticed_though_the_loop_gets_no_signal(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler may have taken SIGCHLD over, or have waited for any child: no slot waits for ever because of that."""

    async def never(_: asyncio.subprocess.Process) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("asyncio.subprocess.Process.wait", never)
    monkeypatch.setattr(process, "LOOK_SECONDS", SHORT_PAUSE)
    apart = HandlerProcessPool(WorkerConfig(app="nowhere:app"))
    async with asyncio.timeout(20):
        outcome = await apart.run(one_work(app, claimed(type="apart")), Exponential(), lambda _: None)
    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, HandlerProcessFailed)


def test_the_exit_code_of_a_child_is_reported_once_and_none_while_it_runs() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input(); raise SystemExit(3)"], stdin=subprocess.PIPE)
    assert child.stdin is not None
    assert code_of_ended(child.pid) is None
    child.stdin.write(b"\n")
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert (code_of_ended(child.pid), code_of_ended(child.pid)) == (3, UNKNOWN)
    child.wait()
