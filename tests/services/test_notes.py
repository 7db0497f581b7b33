"""Progress and log lines: gathered, written together, and written again if the store was away."""

from typing import Any

import pytest

from tests.services.parts import Flaky, Listener, one_work
from tests.support.seed import claim_one, completed, enqueue_one, look, nothing, open_lease, settle
from windlass import App, Context
from windlass.store.contract import Store
from windlass.worker.handlers.work import MAX_UNSENT_LINES, Work
from windlass.worker.runner.notes import Notes


class Enqueuer:
    """A running job whose handler speaks."""

    def __init__(self, store: Store, work: Work, *failures: str) -> None:
        self.store = store
        self.work = work
        self.listener = Listener()
        self.role: Any = Flaky(store.jobs, "note", failures)
        self.notes = Notes(self.role, self.listener)
        work.unsent = self.notes.unsent
        self.ctx = Context(work)

    async def kept(self) -> tuple[list[str], float | None]:
        """The lines and the progress that the store has."""
        job = await look(self.store, self.work.claimed.id)
        return [line.text for line in job.logs], job.progress.done if job.progress else None


@pytest.fixture
async def work(store: Store) -> Work:
    """A job that runs."""
    app = App("sqlite:///never-opened.db")
    app.task(type="t")(nothing)
    await open_lease(store)
    await enqueue_one(store)
    return one_work(app, await claim_one(store))


async def test_the_newest_progress_wins_and_every_line_is_kept(store: Store, work: Work) -> None:
    desk = Enqueuer(store, work)
    for step in range(5):
        desk.ctx.progress(step)
        desk.ctx.log(f"step {step}")
    await desk.notes.send()
    assert await desk.kept() == ([f"step {step}" for step in range(5)], 4)
    assert len(desk.role.asked) == 1


async def test_what_is_written_is_not_written_twice(store: Store, work: Work) -> None:
    desk = Enqueuer(store, work)
    desk.ctx.log("first")
    await desk.notes.send()
    desk.ctx.log("second")
    await desk.notes.send()
    assert (await desk.kept())[0] == ["first", "second"]
    assert desk.notes.unsent == set()


async def test_what_could_not_be_written_is_written_with_the_next_ones(store: Store, work: Work) -> None:
    desk = Enqueuer(store, work, "before")
    desk.ctx.log("first")
    await desk.notes.send()
    assert (desk.listener.names, desk.notes.unsent) == (["StoreFailed"], {work})
    desk.ctx.log("second")
    await desk.notes.send()
    assert (await desk.kept())[0] == ["first", "second"]


async def test_a_flood_is_bounded_while_nothing_can_be_written(store: Store, work: Work) -> None:
    desk = Enqueuer(store, work)
    for number in range(10 * MAX_UNSENT_LINES):
        desk.ctx.log(str(number))
    await desk.notes.send()
    lines = (await desk.kept())[0]
    assert (len(lines), lines[-1]) == (MAX_UNSENT_LINES, str(10 * MAX_UNSENT_LINES - 1))


async def test_only_those_that_are_asked_for_are_sent(store: Store, work: Work) -> None:
    desk = Enqueuer(store, work)
    desk.ctx.log("a line")
    await desk.notes.send(set())
    assert desk.notes.unsent == {work}
    await desk.notes.send({work})
    assert (await desk.kept())[0] == ["a line"]


async def test_a_late_note_changes_nothing(store: Store, work: Work) -> None:
    desk = Enqueuer(store, work)
    await settle(store, completed(work.claimed))
    desk.ctx.log("too late")
    await desk.notes.send()
    assert await desk.kept() == ([], None)
