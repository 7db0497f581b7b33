"""note: what running attempts say about themselves."""

from tests.support.clock import ManualClock
from tests.support.seed import claim_one, completed, look, new_job, requeued, running, settle
from windlass.core.jobs.job import Claimed, LogLine, Progress
from windlass.core.moments import to_datetime
from windlass.store.contract import Store
from windlass.store.records import Note

NOW = to_datetime(0)


def said(job: Claimed, *texts: str, attempt: int | None = None, progress: Progress | None = None) -> Note:
    number = attempt or job.attempt
    lines = tuple(LogLine(NOW, number, text) for text in texts)
    return Note(id=job.id, queue=job.queue, attempt=number, progress=progress, lines=lines)


async def test_the_start_of_the_handler_is_kept(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    assert (await look(store, job.id)).started_at is None
    await store.jobs.note([Note(id=job.id, queue=job.queue, attempt=1, started_after=250)])
    found = await look(store, job.id)
    assert found.started_at == to_datetime(clock.wall() + 250)
    assert found.attempts[-1].started_at == found.started_at


async def test_progress_is_replaced_and_lines_are_added(store: Store) -> None:
    job = await running(store)
    await store.jobs.note([said(job, "one", progress=Progress(1, 10, "begun"))])
    await store.jobs.note([said(job, "two"), said(job, "three", progress=Progress(5, 10))])
    found = await look(store, job.id)
    assert found.progress == Progress(5, 10)
    assert [line.text for line in found.logs] == ["one", "two", "three"]


async def test_notes_stay_with_a_finished_job_and_through_its_attempts(store: Store) -> None:
    job = await running(store)
    await store.jobs.note([said(job, "first")])
    await settle(store, requeued(job))
    again = await claim_one(store)
    await store.jobs.note([said(again, "second")])
    await settle(store, completed(again))
    assert [(line.attempt, line.text) for line in (await look(store, job.id)).logs] == [(1, "first"), (2, "second")]


async def test_a_note_of_an_older_attempt_is_dropped(store: Store, clock: ManualClock) -> None:
    old = await running(store)
    await settle(store, requeued(old))
    await claim_one(store)
    before = await look(store, old.id)
    late = Note(id=old.id, queue=old.queue, attempt=1, started_after=1, progress=Progress(9))
    await store.jobs.note([late, said(old, "late")])
    assert await look(store, old.id) == before


async def test_a_note_of_a_settled_attempt_is_dropped(store: Store) -> None:
    job = await running(store)
    await settle(store, completed(job))
    before = await look(store, job.id)
    await store.jobs.note([said(job, "late", progress=Progress(1))])
    assert await look(store, job.id) == before


async def test_a_dropped_note_does_not_take_others_with_it(store: Store) -> None:
    job = await running(store)
    unknown = Note(id=new_job().id, queue="default", attempt=1, progress=Progress(1))
    await store.jobs.note([unknown, said(job, "kept"), said(job, "late", attempt=7)])
    assert [line.text for line in (await look(store, job.id)).logs] == ["kept"]


async def test_lines_are_bounded_in_number_and_length_and_the_newest_stay(store: Store) -> None:
    job = await running(store)
    for start in range(0, 400, 100):
        await store.jobs.note([said(job, *(f"{n} " + "x" * 5000 for n in range(start, start + 100)))])
    logs = (await look(store, job.id)).logs
    assert logs[-1].text.startswith("399 ")
    assert len(logs) <= 200
    assert max(len(line.text) for line in logs) <= 1000


async def test_notes_go_when_their_job_is_deleted(store: Store, clock: ManualClock) -> None:
    job = await running(store)
    await store.jobs.note([said(job, "old")])
    await settle(store, completed(job))
    await store.operator.delete([job.id])
    clock.advance(2 * 86_400_000_000)
    await store.operator.prune(10)
    await store.jobs.enqueue([new_job(id=job.id)])
    assert (await look(store, job.id)).logs == ()
