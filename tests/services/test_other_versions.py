"""Two versions of a task on one queue: a job goes to a worker that knows its arguments, and dies only without one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.parts import claimed, one_work, table_of
from tests.support.seed import worker_info
from windlass import App, Dead, StoreUnavailable
from windlass.core.events import AttemptEnded
from windlass.core.jobs.outcome import OtherVersion, Outcome, Raised
from windlass.core.status import Status
from windlass.observe.logs import sentence
from windlass.store.clock import since_boot
from windlass.store.records import WorkerInfo
from windlass.worker.handlers.attempt import run_async, run_sync
from windlass.worker.runner import held_jobs

PAYLOAD = '{"a":1,"b":2,"c":3}'
KNOWS = {"t": ("a", "b", "c")}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    """The older version of the app."""
    app = App(f"sqlite:///{tmp_path}/jobs.db?durability=relaxed", deadline=30)
    yield app
    await asyncio.to_thread(app.close)


async def attempt(app: App, kind: str, payload: str = PAYLOAD) -> Outcome:
    async def handle_async(a: int) -> None: ...

    def handle_sync(a: int) -> None: ...

    app.task(type="t")(handle_async if kind == "async" else handle_sync)
    work = one_work(app, claimed(type="t", payload=payload))
    return await run_async(work) if work.is_async else await asyncio.to_thread(run_sync, work)


@pytest.mark.parametrize("kind", ["async", "def"])
@pytest.mark.parametrize("parameters", [KNOWS, {"t": ("**",)}])
async def test_a_job_is_left_to_a_live_worker_that_knows_its_arguments(
    app: App, kind: str, parameters: dict[str, tuple[str, ...]]
) -> None:
    await (await app._ready()).workers.beat(worker_info(parameters=parameters))
    assert await attempt(app, kind) == OtherVersion(("b", "c"))


@pytest.mark.parametrize("kind", ["async", "def"])
@pytest.mark.parametrize(
    "worker",
    [
        None,
        worker_info(parameters={"t": ("a", "b")}),
        worker_info(parameters={"other": ("a", "b", "c")}),
        worker_info(parameters=KNOWS, queues=("mail",)),
        worker_info(parameters=KNOWS, draining=True),
    ],
    ids=["no worker", "one argument", "another type", "another queue", "about to stop"],
)
async def test_without_such_a_worker_the_job_is_dead_and_its_error_names_the_parameters(
    app: App, kind: str, worker: WorkerInfo | None
) -> None:
    if worker is not None:
        await (await app._ready()).workers.beat(worker)
    outcome = await attempt(app, kind)
    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, Dead)
    assert outcome.error.reason == "the stored arguments do not fit the task"
    assert outcome.report.message == "b: is not a parameter of t, which takes a"


async def test_while_the_store_does_not_answer_nothing_is_decided(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away() -> Any:
        raise StoreUnavailable("away")

    monkeypatch.setattr((await app._ready()).workers, "list", away)
    assert await attempt(app, "async") == OtherVersion(("b", "c"))


async def test_arguments_that_no_version_can_have_are_no_question_of_versions(app: App) -> None:
    await (await app._ready()).workers.beat(worker_info(parameters=KNOWS))
    outcome = await attempt(app, "async", '{"a":"one"}')
    assert isinstance(outcome, Raised)
    assert outcome.report.message == "a: expected int, got str"


def test_an_app_says_which_parameters_its_tasks_have() -> None:
    app = App("sqlite:///never-opened.db")

    @app.task(type="t", aliases=["old"])
    def handle(a: int, *, b: int = 2, **more: int) -> None: ...

    @app.task
    def nothing() -> None: ...

    assert app.registry.parameters == {"old": ("a", "b", "**"), "t": ("a", "b", "**")}


def test_what_is_left_to_another_worker_is_logged() -> None:
    event = AttemptEnded(
        job="i",
        type="t",
        queue="q",
        attempt=2,
        status=Status.SCHEDULED,
        outcome="requeued",
        worker="w",
        error="why",
        wait=1,
    )
    assert sentence(event)[1] == "job i (t) attempt 2 requeued for 1.0 s: why"


def test_a_type_that_is_left_to_others_is_not_claimed_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    with table_of() as table:
        held = held_jobs.HeldJobs(App("sqlite:///never-opened.db").registry, table, set())
        held.leave("a")
        assert held.claimable(("a", "t")) == ("t",)
        monkeypatch.setattr(held_jobs, "since_boot", lambda: since_boot() + held_jobs.LEAVE_TIME)
        assert held.claimable(("a", "t")) == ("a", "t")
