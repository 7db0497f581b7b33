"""Starting runners where processes, threads or descriptors are scarce: tried again, with nothing left over."""

import asyncio
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.services.parts import Listener
from windlass.core.events import StoreFailed, WorkerStopped
from windlass.worker.channel import Hello, StartFailed
from windlass.worker.config import WorkerConfig
from windlass.worker.supervisor.removal import Removal
from windlass.worker.supervisor.runner_process import FAILING_AFTER, Restarts, RunnerProcess
from windlass.worker.supervisor.state import SupervisorState
from windlass.worker.supervisor.supervisor import Supervisor
from windlass.worker.supervisor.watch import Watch

CONFIG = WorkerConfig(app="x:app")
SHORT_PAUSE = 0.001


def failing(times: int, error: Exception, answer: Any = None) -> tuple[Callable[..., Any], list[int]]:
    """A coroutine function that fails so many times first; and its calls."""
    calls: list[int] = []

    async def call(*_: Any, **__: Any) -> Any:
        calls.append(1)
        if len(calls) <= times:
            raise error
        return answer

    return call, calls


async def test_a_runner_that_cannot_be_started_is_started_later_and_that_is_reported_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: Any = object()
    start, calls = failing(3, BlockingIOError(11, "Resource temporarily unavailable"), answer=started)
    monkeypatch.setattr(RunnerProcess, "start", start)
    monkeypatch.setattr("windlass.worker.supervisor.runner_process.MAX_PAUSE", SHORT_PAUSE)
    listener = Listener()
    assert await Restarts(CONFIG, asyncio.Event(), listener).start() is started
    assert len(calls) == 4
    (reported,) = listener.heard
    assert isinstance(reported, StoreFailed)
    assert reported.doing == "starting a runner"


async def test_a_worker_that_stops_waits_for_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    start, calls = failing(10**9, BlockingIOError(11, "Resource temporarily unavailable"))
    monkeypatch.setattr(RunnerProcess, "start", start)
    stopping = asyncio.Event()

    def stop(_: object) -> None:
        stopping.set()

    assert await Restarts(CONFIG, stopping, stop).start() is None
    assert len(calls) == 1


@pytest.mark.parametrize("step", ["socket.socketpair", "os.memfd_create", "asyncio.create_subprocess_exec"])
async def test_a_start_that_fails_leaves_no_descriptor_open(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(24, "Too many open files")

    before = set(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(step, refuse)
        with pytest.raises(OSError, match="Too many"):
            await RunnerProcess.start(CONFIG)
    await asyncio.sleep(0)  # a transport closes with the next turn of the loop
    await asyncio.sleep(0)
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("runner", "lacks_store", "ready"), [(None, False, False), (None, True, True), ("r1", False, False)]
)
async def test_a_worker_that_cannot_keep_one_of_its_runners_is_live_and_not_ready_unless_the_store_is_away(
    monkeypatch: pytest.MonkeyPatch, runner: str | None, lacks_store: bool, ready: bool
) -> None:
    now = 10**12
    monkeypatch.setattr("windlass.worker.supervisor.runner_process.since_boot", lambda: now)
    monkeypatch.setattr("windlass.worker.supervisor.runner_process.MAX_PAUSE", SHORT_PAUSE)
    start, _ = failing(0, OSError(), answer=SimpleNamespace(runner=runner, lacks_store=lacks_store))
    monkeypatch.setattr(RunnerProcess, "start", start)
    supervisor = Supervisor(CONFIG, Listener())
    monkeypatch.setattr(supervisor._leases, "current", lambda: True)
    monkeypatch.setattr(supervisor._leases, "held", lambda: True)
    works, restarts = (Restarts(CONFIG, asyncio.Event(), Listener()) for _ in range(2))
    supervisor._restarts += [works, restarts]
    for _ in range(3):
        await restarts.start()
        await restarts.pause()
        now += FAILING_AFTER // 2
        assert supervisor._ready() is (ready or now <= 10**12 + FAILING_AFTER)
        assert await supervisor_answers(supervisor, "/healthz") == 200


async def supervisor_answers(supervisor: Supervisor, path: str) -> int:
    """The status of an answer on its health port."""
    health = await supervisor._open_health()
    return int((await health._answer(f"GET {path} HTTP/1.1\r\n\r\n".encode())).split()[1])


async def test_a_runner_that_works_for_a_while_makes_a_worker_healthy_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10**12
    monkeypatch.setattr("windlass.worker.supervisor.runner_process.since_boot", lambda: now)
    monkeypatch.setattr("windlass.worker.supervisor.runner_process.MAX_PAUSE", SHORT_PAUSE)
    start, _ = failing(1, OSError(11, "no process"), answer=SimpleNamespace(runner="r1", lacks_store=False))
    monkeypatch.setattr(RunnerProcess, "start", start)
    restarts = Restarts(CONFIG, asyncio.Event(), Listener())
    await restarts.start()
    now += FAILING_AFTER + 1
    assert not restarts.failing
    await restarts.pause()
    await restarts.start()
    now += FAILING_AFTER + 1
    assert not restarts.failing


class Gone:
    """A runner whose process is gone, and that never had a lease."""

    stopping = said_goodbye = hung = closed = False
    runner = None
    pid = 4242

    def __init__(self, end_leftovers: Callable[[], Any]) -> None:
        self.end_leftovers = end_leftovers

    def ending(self) -> str:
        return "exit code 1"

    def close(self) -> None:
        self.closed = True


async def test_leftovers_that_no_thread_can_look_for_are_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.worker.supervisor.removal.LEFTOVER_PAUSE", SHORT_PAUSE)
    listener = Listener()
    end, calls = failing(2, RuntimeError("can't start new thread"))
    gone: Any = Gone(end)
    await Removal(SupervisorState("w1", CONFIG, listener, set()), asyncio.Event()).remove(gone, announce=True)
    assert len(calls) == 3
    assert gone.closed
    assert listener.names == ["RunnerEnded", "StoreFailed"]


async def test_the_watch_continues_after_an_unexpected_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.worker.supervisor.watch.EVERY_SECONDS", SHORT_PAUSE)
    listener = Listener()
    watch = Watch(SupervisorState("w1", CONFIG, listener, set()))
    look, calls = failing(2, OSError(24, "Too many open files"))
    monkeypatch.setattr(watch, "_check_all", look)
    watching = asyncio.create_task(watch.run())
    async with asyncio.timeout(10):
        while len(calls) < 4:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert not watching.done()
    assert listener.names == ["StoreFailed", "StoreRecovered"]
    watching.cancel()


@pytest.mark.parametrize(
    ("worked", "of_store", "ends"), [(True, True, False), (False, True, True), (True, False, True)]
)
async def test_a_store_that_refuses_ends_a_start_and_never_a_worker_that_has_worked(
    worked: bool, of_store: bool, ends: bool
) -> None:
    supervisor = Supervisor(CONFIG, Listener())
    if worked:
        supervisor._registered.set()
    child: Any = Gone(failing(0, OSError())[0])
    supervisor._on_start_failed(child, StartFailed("no", of_store=of_store))
    assert supervisor._stopping.is_set() is ends
    assert child.problem == "no"


async def test_a_store_that_never_answered_is_not_waited_for_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.worker.supervisor.supervisor.UNREGISTER_SECONDS", 3600)

    async def hang(_: str) -> None:
        await asyncio.Event().wait()

    async def close() -> None: ...

    store: Any = SimpleNamespace(
        workers=SimpleNamespace(unregister=hang),
        leases=SimpleNamespace(release_liveness_lock=lambda _: None),
        close=close,
    )
    listener = Listener()
    supervisor = Supervisor(CONFIG, listener)
    supervisor._state.set_store(store, Hello("x", ("default",), ("t",)))
    async with asyncio.timeout(20):
        await supervisor._unregister()
    (stopped,) = listener.heard
    assert isinstance(stopped, WorkerStopped)
    assert not stopped.signed_off
