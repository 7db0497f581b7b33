"""Hooks: their order, their failures, their time."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.services.parts import Flaky, Listener
from tests.support.seed import put
from windlass import App, ConfigError, Job, State
from windlass.core.events import AttemptEnded, HookFailed
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.worker.handlers import hooks as lifespans
from windlass.worker.handlers.hooks import DeadHooks, Lifespan


@pytest.fixture
def app() -> App:
    """Never opened."""
    return App("sqlite:///never-opened.db")


async def test_hooks_start_in_order_and_stop_in_reverse(app: App) -> None:
    said: list[str] = []

    @app.on_start
    def first(state: State) -> None:
        state.pool = "pool"
        said.append("first")

    @app.on_start
    async def second(state: State) -> None:
        said.append(f"second with {state.pool}")

    @app.on_stop
    async def close_first(state: State) -> None:
        said.append(f"closed {state.pool}")

    @app.on_stop
    def close_second() -> None:
        said.append("closed second")

    lifespan = Lifespan(app, Listener())
    await lifespan.start()
    assert said == ["first", "second with pool"]
    await lifespan.stop()
    assert said[2:] == ["closed second", "closed pool"]


async def test_plain_hooks_share_a_thread_and_async_ones_have_the_loop(app: App) -> None:
    threads: list[threading.Thread] = []

    def where() -> None:
        threads.append(threading.current_thread())

    async def on_the_loop() -> None:
        where()

    app.on_start(where)
    app.on_stop(where)
    app.on_start(on_the_loop)
    lifespan = Lifespan(app, Listener())
    await lifespan.start()
    await lifespan.stop()
    assert threads[0] is threads[2] is not threading.current_thread() is threads[1]


@pytest.mark.parametrize("error", [ValueError("no pool"), SystemExit("no pool"), asyncio.CancelledError("no pool")])
async def test_a_start_hook_that_fails_is_a_readable_refusal(app: App, error: BaseException) -> None:
    after: list[int] = []

    @app.on_start
    async def connect() -> None:
        raise error

    app.on_start(lambda: after.append(1))
    with pytest.raises(ConfigError, match=r"on_start hook .*connect") as caught:
        await Lifespan(app, Listener()).start()
    text = str(caught.value)
    assert f"{type(error).__name__}: no pool" in text
    assert "worker/handlers/hooks.py" not in text
    assert "raise error" in text
    assert after == []


async def test_a_stop_hook_that_fails_keeps_none_from_running(app: App) -> None:
    said: list[str] = []
    app.on_stop(lambda: said.append("last"))

    @app.on_stop
    def fails() -> None:
        raise SystemExit("on purpose")

    heard = Listener()
    await Lifespan(app, heard).stop()
    assert said == ["last"]
    (event,) = heard.heard
    assert isinstance(event, HookFailed)
    assert "SystemExit: on purpose" in event.problem
    assert "fails" in event.hook


async def test_stop_hooks_that_never_end_are_left_behind(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifespans, "STOP_SECONDS", 0.1)
    release = threading.Event()

    @app.on_stop
    def stuck_thread() -> None:
        release.wait(60)

    @app.on_stop
    async def stuck() -> None:
        await asyncio.Event().wait()

    heard = Listener()
    await Lifespan(app, heard).stop(0)
    release.set()
    assert [event.problem for event in heard.heard if isinstance(event, HookFailed)] == ["it took too long"] * 2


def test_what_cannot_be_called_as_a_hook_is_refused(app: App) -> None:
    with pytest.raises(ConfigError, match=r"on_start calls it with \(state\)"):

        @app.on_start
        def too_many(state: State, more: int) -> None: ...

    with pytest.raises(ConfigError, match=r"on_dead calls it with \(job, state\)"):

        @app.on_dead
        def three(job: Job, state: State, more: int) -> None: ...

    with pytest.raises(ConfigError, match="is a generator"):

        @app.on_stop
        def generator():  # type: ignore[no-untyped-def]
            yield

    with pytest.raises(ConfigError, match="takes a function, not int"):
        app.on_start(7)  # type: ignore[type-var]


async def test_a_coroutine_that_a_plain_hook_returns_is_not_forgotten(app: App) -> None:
    async def close() -> None: ...

    app.on_stop(lambda: close())
    heard = Listener()
    await Lifespan(app, heard).stop()
    (event,) = heard.heard
    assert isinstance(event, HookFailed)
    assert "make it an `async def`" in event.problem


def test_a_function_written_in_c_can_be_a_hook(app: App) -> None:
    app.on_start(print)
    assert "(built in)" in str(app.hooks.start[0])


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[tuple[App, Store]]:
    app = App(f"sqlite:///{tmp_path}/jobs.db", deadline=30)
    yield app, await app._ready()
    await app.aclose()


def ended(id_: str, status: Status) -> AttemptEnded:
    return AttemptEnded(job=id_, type="t", queue="q", attempt=1, status=status, outcome=str(status), worker="w")


async def test_a_dead_job_is_passed_to_every_hook_whatever_the_others_do(opened: tuple[App, Store]) -> None:
    app, store = opened
    reported: list[tuple[str, str]] = []
    app.state.tag = "tag"

    @app.on_dead
    def fails(job: Job) -> None:
        raise ValueError(job.reason)

    @app.on_dead
    async def alert(job: Job, state: State) -> None:
        reported.append((job.id, state.tag))

    id_ = await put(store, Status.DEAD)
    heard = Listener()
    hooks = DeadHooks(app, store, Lifespan(app, heard), heard)
    emit = hooks.listening(heard)
    running = asyncio.create_task(hooks.run())
    emit(ended(id_, Status.FAILED))
    assert hooks.quiet.is_set()
    emit(ended(id_, Status.DEAD))
    async with asyncio.timeout(10):
        await hooks.quiet.wait()
    assert reported == [(id_, "tag")]
    (failure,) = [event for event in heard.heard if isinstance(event, HookFailed)]
    assert (failure.job, failure.problem) == (id_, "ValueError: hopeless")
    await app.jobs.aretry(id_)
    emit(ended(id_, Status.DEAD))
    async with asyncio.timeout(10):
        await hooks.quiet.wait()
    assert len(reported) == 1, "it is not dead any more"
    running.cancel()


async def test_a_dead_job_is_passed_to_hooks_also_if_the_store_was_away_when_it_died(
    opened: tuple[App, Store],
) -> None:
    app, store = opened
    reported: list[str] = []

    @app.on_dead
    def alert(job: Job) -> None:
        reported.append(job.id)

    id_ = await put(store, Status.DEAD)
    heard = Listener()
    away: Any = SimpleNamespace(operator=Flaky(store.operator, "get", ["before", "before"]))
    hooks = DeadHooks(app, away, Lifespan(app, heard), heard)
    running = asyncio.create_task(hooks.run())
    hooks.listening(heard)(ended(id_, Status.DEAD))
    async with asyncio.timeout(10):
        await hooks.quiet.wait()
    assert (reported, heard.names) == ([id_], ["AttemptEnded", "StoreFailed", "StoreRecovered"])
    running.cancel()


async def test_what_an_on_dead_hook_leaves_behind_is_not_there_for_the_next_job(opened: tuple[App, Store]) -> None:
    app, store = opened
    var: ContextVar[int] = ContextVar("var")
    found: list[int | None] = []
    tasks: list[asyncio.Task[Any] | None] = []

    @app.on_dead
    def in_thread() -> None:
        found.append(var.get(None))
        var.set(1)

    @app.on_dead
    async def on_loop() -> None:
        found.append(var.get(None))
        var.set(1)
        tasks.append(task := asyncio.current_task())
        assert task is not None
        task.cancel()

    heard = Listener()
    hooks = DeadHooks(app, store, Lifespan(app, heard), heard)
    emit = hooks.listening(heard)
    running = asyncio.create_task(hooks.run())
    for _ in range(3):
        emit(ended(await put(store, Status.DEAD), Status.DEAD))
    async with asyncio.timeout(10):
        await hooks.quiet.wait()
    assert found == [None] * 6
    assert len(set(tasks)) == 3
    assert running not in tasks
    assert not running.done()
    running.cancel()


def test_without_hooks_nothing_listens(app: App) -> None:
    heard = Listener()

    async def listening() -> bool:
        return DeadHooks(app, None, Lifespan(app, heard), heard).listening(heard) is heard  # type: ignore[arg-type]

    assert asyncio.run(listening())
