"""Progress and log lines: gathered, written together, and written again if the store was away."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.services.parts import Flaky, Listener, one_work
from tests.support.seed import claim_one, completed, enqueue_one, look, nothing, open_lease, settle
from windlass import App, Context
from windlass.core.ids import new_id
from windlass.core.jobs.outcome import Settlement
from windlass.core.webhooks.delivery import WEBHOOK_TYPE
from windlass.observe.logs import sentence
from windlass.store.contract import Store
from windlass.worker.handlers.work import MAX_UNSENT_LINES, Work
from windlass.worker.runner.notes import FinalNotes, Notes


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


class Settled:
    """Collects settlements, with what was kept of the notes by then."""

    def __init__(self, desk: Enqueuer) -> None:
        self.works: list[Work] = []
        self.written = asyncio.Event()
        self.final = FinalNotes(desk.notes, self._settle)

    def _settle(self, work: Work, _: Settlement) -> None:
        self.works.append(work)
        self.written.set()


async def test_an_outcome_waits_for_notes_that_failed_and_are_tried_again(store: Store, work: Work) -> None:
    desk = Enqueuer(store, work, "before", "before")
    settled = Settled(desk)
    desk.ctx.log("the last line")
    settled.final.settle(work, completed(work.claimed))
    await settled.written.wait()
    assert (await desk.kept())[0] == ["the last line"]
    await settled.final.sent()
    assert settled.works == [work]


async def test_an_outcome_waits_for_notes_that_are_on_their_way(store: Store, work: Work) -> None:
    desk = Enqueuer(store, work)
    settled, arrived, answer, note = Settled(desk), asyncio.Event(), asyncio.Event(), store.jobs.note

    async def slow(notes: Any) -> None:
        arrived.set()
        await answer.wait()
        await note(notes)

    desk.role.note = slow
    desk.ctx.log("the last line")
    sending = asyncio.create_task(desk.notes.send())
    await arrived.wait()
    settled.final.settle(work, completed(work.claimed))
    assert settled.works == []
    answer.set()
    await settled.written.wait()
    assert (await desk.kept())[0] == ["the last line"]
    await sending


async def test_an_outcome_that_comes_while_others_are_written_goes_next(
    store: Store, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.worker.runner.notes.EVERY_SECONDS", 3600)
    desk = Enqueuer(store, work)
    settled, note = Settled(desk), store.jobs.note
    other = one_work(App.testing(), msgspec.structs.replace(work.claimed, id=new_id(), type=WEBHOOK_TYPE))
    other.unsent = desk.notes.unsent

    async def interrupted(notes: Any) -> None:
        if not settled.works:
            other.log("another line")
            settled.final.settle(other, completed(other.claimed))
        await note(notes)

    desk.role.note = interrupted
    desk.ctx.log("the last line")
    settled.final.settle(work, completed(work.claimed))
    async with asyncio.timeout(10):
        await settled.final.sent()
    assert settled.works == [work, other]


async def test_an_outcome_does_not_wait_for_ever_for_its_notes(
    store: Store, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.worker.runner.notes.FINAL_SECONDS", 0.01)
    desk = Enqueuer(store, work, *["before"] * 100)
    settled = Settled(desk)
    desk.ctx.log("the last line")
    settled.final.settle(work, completed(work.claimed))
    await settled.written.wait()
    assert desk.listener.names == ["StoreFailed"]


async def test_an_outcome_does_not_wait_for_a_note_that_hangs(
    store: Store, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.worker.runner.notes.FINAL_SECONDS", 0.01)
    desk = Enqueuer(store, work)
    settled, answer = Settled(desk), asyncio.Event()
    desk.role.note = lambda notes: answer.wait()
    desk.ctx.log("the last line")
    settled.final.settle(work, completed(work.claimed))
    async with asyncio.timeout(2):
        await settled.written.wait()
    answer.set()
    await settled.final.sent()
    assert settled.works == [work]


async def test_a_note_that_is_lost_is_not_said_to_be_tried_again(store: Store, work: Work) -> None:
    desk = Enqueuer(store, work)

    async def refuse(_: Any) -> None:
        raise ValueError("no such column")

    desk.role.note = refuse
    desk.ctx.log("a line")
    await desk.notes.send()
    ((_, line),) = map(sentence, desk.listener.heard)
    assert line == "writing progress in default failed: ValueError: no such column"
    assert desk.notes.unsent == set()
