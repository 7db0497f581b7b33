"""Hooks, middleware and the context in tests: as in a runner, and their errors are the test's."""

from collections.abc import Iterator

import pytest

from windlass import App, ConfigError, Context, Job, State, current_job
from windlass.testing import arun_all, run_all


@pytest.fixture
def reported(app: App) -> list[str]:
    """What happens, in order, in an app with every kind of hook."""
    seen: list[str] = []

    @app.on_start
    async def start(state: State) -> None:
        state.greeting = "hello"
        seen.append("start")

    @app.on_stop
    def stop(state: State) -> None:
        seen.append(f"stop {state.greeting}")

    @app.on_dead
    def died(job: Job) -> None:
        seen.append(f"dead {job.type}")

    @app.middleware
    def around(ctx: Context) -> Iterator[None]:
        seen.append("before")
        yield
        seen.append("after")

    return seen


def test_hooks_and_middleware_go_round_a_run(app: App, reported: list[str]) -> None:
    @app.task
    def greet(ctx: Context, name: str) -> None:
        reported.append(f"{ctx.state.greeting} {name} {current_job().type}")

    greet.enqueue("ann")
    assert len(run_all(app).completed) == 1
    assert reported == ["start", "before", "hello ann greet", "after", "stop hello"]
    with pytest.raises(AttributeError):
        _ = app.state.greeting


async def test_so_they_do_in_asynchronous_tests(app: App, reported: list[str]) -> None:
    @app.task(max_attempts=1)
    async def fail() -> None:
        raise ValueError("no")

    await fail.aenqueue()
    assert len((await arun_all(app)).dead) == 1
    assert reported == ["start", "before", "dead fail", "stop hello"]


def test_a_run_that_raises_is_stopped_in_order_too(app: App, reported: list[str]) -> None:
    @app.task
    def fail() -> None:
        raise ValueError("no")

    fail.enqueue()
    with pytest.raises(ValueError, match="no"):
        run_all(app, raise_errors=True)
    assert reported[-1] == "stop hello"


def test_a_start_hook_that_fails_is_seen_and_nothing_runs(app: App) -> None:
    @app.on_start
    def start(state: State) -> None:
        raise OSError("no pool")

    @app.task
    def work() -> None: ...

    job = work.enqueue()
    with pytest.raises(ConfigError, match="no pool"):
        run_all(app)
    assert app.jobs.get(job.id).status == "pending"


def test_children_are_enqueued_by_the_context(app: App) -> None:
    @app.task
    def child(n: int) -> None: ...

    @app.task
    def parent(ctx: Context) -> None:
        ctx.enqueue(child, 1)

    @app.task
    async def aparent(ctx: Context) -> None:
        await ctx.aenqueue(child, 2)

    parent.enqueue()
    aparent.enqueue()
    assert {job.payload.get("n") for job in run_all(app).completed} == {None, 1, 2}


def test_handlers_get_the_apps_own_class_of_state_and_each_run_a_copy_of_it(app: App) -> None:
    class Services(State):
        limit = 5

    app.state = state = Services()
    seen: list[int] = []

    @app.on_start
    def start(state: Services) -> None:
        state.limit += 1

    @app.task
    def work(ctx: Context[Services]) -> None:
        seen.append(ctx.state.limit)

    for _ in range(2):
        work.enqueue()
        run_all(app, raise_errors=True)
    assert (seen, app.state is state, state.limit) == ([6, 6], True, 5)


def test_every_stop_hook_runs_and_the_first_error_is_raised(app: App) -> None:
    ran: list[str] = []

    @app.on_stop
    def first() -> None:
        ran.append("first")

    @app.on_stop
    def second() -> None:
        ran.append("second")
        raise OSError("not closed")

    with pytest.raises(OSError, match="not closed"):
        run_all(app)
    assert ran == ["second", "first"]
