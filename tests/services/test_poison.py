"""Handlers that say or raise nonsense: their outcome is stored all the same, and the next job is not hurt."""

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from tests.services.parts import Listener, one_work
from tests.support.seed import claim_one, enqueue_one, look, open_lease
from windlass import App, ByError, Cancel, Context, Dead, Fixed, Retry, Snooze, Status
from windlass.core.jobs.outcome import decide
from windlass.store.contract import Store
from windlass.store.records import JobFilter, Settled
from windlass.worker.handlers.attempt import run_sync
from windlass.worker.runner.notes import Notes


class Rude(Exception):
    def __str__(self) -> str:
        raise RuntimeError("none of your business")


class Madness:
    """A back-off of the program's own making."""

    attempts = 3

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def seconds(self, failures: int, random: Random) -> float:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer  # type: ignore[no-any-return]


NONSENSE: dict[str, tuple[Callable[[], BaseException], Status]] = {
    "dead of an exception": (lambda: Dead(ValueError("x")), Status.DEAD),  # type: ignore[arg-type]
    "dead of a surrogate": (lambda: Dead("\ud800"), Status.DEAD),
    "dead of a novel": (lambda: Dead("x" * 10_000_000), Status.DEAD),
    "dead of something rude": (lambda: Dead(Rude()), Status.DEAD),  # type: ignore[arg-type]
    "dead of nothing": (lambda: Dead(None), Status.DEAD),  # type: ignore[arg-type]
    "cancelled by a number": (lambda: Cancel(5), Status.CANCELLED),  # type: ignore[arg-type]
    "cancelled with a NUL": (lambda: Cancel("\x00\x1b"), Status.CANCELLED),
    "snoozed for a word": (lambda: Snooze("soon"), Status.FAILED),
    "snoozed into the past": (lambda: Snooze(timedelta(days=-1)), Status.FAILED),
    "snoozed for ever": (lambda: Snooze(float("inf")), Status.FAILED),
    "retried after NaN": (lambda: Retry(after=float("nan")), Status.FAILED),
    "retried after ages": (lambda: Retry(after=10**400), Status.FAILED),
    "an error that cannot be shown": (Rude, Status.FAILED),
    "an error with a surrogate": (lambda: ValueError("\ud800"), Status.FAILED),
    "an error of 10 MB": (lambda: ValueError("x" * 10_000_000), Status.FAILED),
}


async def outcome_of(store: Store, app: App) -> Status:
    """Run the next job of the app's one task, and settle it: the status it has then."""
    job = await claim_one(store)
    work = one_work(app, job)
    settlement = decide(job, run_sync(work), work.definition.policy(Fixed()), Random(0))
    assert await store.jobs.settle([settlement]) == [Settled.SETTLED]
    found = await look(store, job.id)
    (page,) = (await store.operator.list(JobFilter(), 10, None)).items
    assert page.id == found.id
    assert len(found.reason or "") <= 5000
    return found.status


@pytest.fixture
async def app(store: Store) -> App:
    """Never opened: its jobs are enqueued by the test."""
    await open_lease(store)
    await enqueue_one(store)
    return App("sqlite:///never-opened.db")


@pytest.mark.parametrize("nonsense", NONSENSE)
async def test_whatever_is_raised_is_settled_and_shown(store: Store, app: App, nonsense: str) -> None:
    make, status = NONSENSE[nonsense]

    @app.task(type="t")
    def handle() -> None:
        raise make()

    assert await outcome_of(store, app) is status


@pytest.mark.parametrize("answer", [ValueError("no"), float("nan"), -5, float("inf"), "soon", None, 10**400])
async def test_a_back_off_that_answers_nonsense_still_lets_the_job_be_retried(
    store: Store, app: App, answer: Any
) -> None:
    @app.task(type="t", retry=ByError({ValueError: Madness(answer)}))
    def handle() -> None:
        raise ValueError("no")

    assert await outcome_of(store, app) is Status.FAILED


async def test_what_a_handler_says_is_kept_whatever_it_is(store: Store, app: App) -> None:
    @app.task(type="t")
    def handle() -> None: ...

    job = await claim_one(store)
    work = one_work(app, job)
    listener = Listener()
    notes = Notes(store.jobs, listener)
    work.unsent = notes.unsent
    ctx = Context(work)
    ctx.log("\ud800\x00\x1b[31m")
    ctx.log(ValueError("not even text"))  # type: ignore[arg-type]
    ctx.progress(1, 3, "\udfff")
    await notes.send()
    found = await look(store, job.id)
    assert [line.text for line in found.logs] == ["\\ud800\\x00\\x1b[31m", "not even text"]
    assert found.progress is not None
    assert (found.progress.done, found.progress.total, found.progress.note) == (1, 3, "\\udfff")
    assert listener.heard == []
