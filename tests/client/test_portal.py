"""Blocking calls through the loop of another thread: whatever becomes of that loop, the caller hears of it."""

import asyncio
import concurrent.futures
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from windlass import App, EnqueueUnknown, StoreUnavailable
from windlass.client.runtime import loop_call
from windlass.client.runtime.loop_call import NotBegun
from windlass.client.runtime.portal import Portal
from windlass.core.ids import new_id

PATIENCE = 30.0


def answer_of(call: Callable[[], Any]) -> "concurrent.futures.Future[Any]":
    """What a call answers, made in a thread that a failing test leaves behind."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def test_a_call_that_begins_while_the_loop_ends_is_refused_and_one_before_it_cancelled() -> None:
    portal = Portal()
    waits, ending, answered = threading.Event(), threading.Event(), threading.Event()

    async def end_slowly() -> None:
        waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await asyncio.to_thread(answered.wait, PATIENCE)

    early = answer_of(lambda: portal.run(end_slowly()))
    assert waits.wait(PATIENCE)
    closing = answer_of(portal.close)
    assert ending.wait(PATIENCE)
    late = answer_of(lambda: portal.run(asyncio.Event().wait()))
    with pytest.raises(NotBegun, match="before the call began"):
        late.result(PATIENCE)
    answered.set()
    with pytest.raises(StoreUnavailable, match="during the call") as caught:
        early.result(PATIENCE)
    assert caught.value.maybe_done
    closing.result(PATIENCE)
    with pytest.raises(NotBegun):
        portal.run(asyncio.sleep(0))  # its loop is closed


def test_a_call_that_a_closed_loop_never_began_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_call, "LOOK_SECONDS", 0.01)
    loop = asyncio.new_event_loop()
    asked = threading.Event()
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda begin: asked.set())
    call = answer_of(lambda: Portal(loop=loop).run(asyncio.sleep(0)))
    assert asked.wait(PATIENCE)
    loop.close()
    with pytest.raises(NotBegun):
        call.result(PATIENCE)


def test_an_enqueue_that_another_thread_breaks_off_by_closing_the_app_names_its_id(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived = threading.Event()

    async def never(*_: Any) -> Any:
        arrived.set()
        await asyncio.Event().wait()

    @app.task
    def wait() -> None: ...

    given = new_id()
    with monkeypatch.context() as slow:
        slow.setattr(app, "_works_without_loop", lambda: False)
        slow.setattr(app, "_enqueue", never)
        enqueueing = answer_of(wait.using(id=given).enqueue)
        assert arrived.wait(PATIENCE)
        app.close()
        with pytest.raises(EnqueueUnknown, match="closed during the call") as caught:
            enqueueing.result(PATIENCE)
    assert caught.value.ids == [given]
    assert wait.using(id=given).enqueue().id == given  # the app opens its store again


def test_a_call_that_meets_the_end_of_its_loop_is_made_on_the_next_one(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_works_without_loop", lambda: False)
    before = app._portal()
    before.run(asyncio.sleep(0))
    app.close()
    portals = iter([before, app._portal()])
    with monkeypatch.context() as raced:
        raced.setattr(app, "_portal", lambda: next(portals))
        assert app.jobs.count() == 0


def test_closing_also_ends_what_cancelled_tasks_start() -> None:
    portal = Portal()
    started: list[asyncio.Task[Any]] = []

    async def start_another() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            started.append(asyncio.create_task(asyncio.Event().wait()))

    async def start() -> None:
        started.append(asyncio.create_task(start_another()))
        await asyncio.sleep(0)

    portal.run(start())
    portal.close()
    assert [task.cancelled() for task in started] == [True, True]


def test_a_call_whose_task_cannot_be_made_raises_the_error() -> None:
    portal = Portal()

    async def refuse_one_task() -> None:
        def make(loop: asyncio.AbstractEventLoop, work: Any, **_: Any) -> Any:
            work.close()
            loop.set_task_factory(None)
            raise MemoryError("no room for a task")

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        loop.set_task_factory(make)

    portal.run(refuse_one_task())
    with pytest.raises(MemoryError, match="no room for a task"):
        answer_of(lambda: portal.run(asyncio.sleep(0))).result(PATIENCE)
    portal.close()


ENDING = """
import asyncio, atexit, time

def look():
    before = len(turns)
    time.sleep(0.1)
    print("held" if len(turns) == before else "runs")
    try:
        portal.run(asyncio.sleep(0))
    except NotBegun:
        print("refused")
    portal.close()

atexit.register(look)  # before the import: called after what Windlass does at the end

from windlass.client.runtime.loop_call import NotBegun
from windlass.client.runtime.portal import Portal

turns = []

async def turn_for_ever():
    loop = asyncio.get_running_loop()

    def turn():
        turns.append(None)
        loop.call_later(0.001, turn)

    turn()

portal = Portal()
portal.run(turn_for_ever())
"""


def test_the_end_of_a_program_finds_no_loop_running_and_a_call_after_it_is_refused() -> None:
    # A loop that wakes up later asks for the lock of an interpreter that is gone: a segmentation fault.
    ended = subprocess.run(
        [sys.executable, "-c", ENDING], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert ended.stdout.split() == ["held", "refused"]
