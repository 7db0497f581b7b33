"""Waiting for a result: through retries, until the job has ended, or the time is over."""

import asyncio
from dataclasses import dataclass
from datetime import date
from uuid import uuid4

import pytest

from tests.client.labour import Labour, raised
from tests.support.seed import worker_info
from windlass import App, Cancel, Dead, Handle, JobCancelled, JobDead, JobNotFound, ResultUnavailable, Status, Task
from windlass.core.jobs.outcome import Done


@dataclass
class Invoice:
    number: int
    issued: date


@pytest.fixture
def task(app: App) -> Task[[], Invoice, Invoice]:
    """A task that returns something typed."""

    @app.task(type="t")
    def task() -> Invoice: ...  # type: ignore[empty-body]

    return task


def test_a_completed_job_gives_what_its_handler_returned(task: Task[[], Invoice, Invoice], labour: Labour) -> None:
    handle = task.enqueue()
    labour.complete('{"number": 7, "issued": "2026-01-02"}')
    assert handle.result(timeout=5) == Invoice(7, date(2026, 1, 2))


async def test_the_async_form_wakes_up_when_the_job_ends(task: Task[[], Invoice, Invoice], labour: Labour) -> None:
    handle = await task.aenqueue()
    waiting = asyncio.create_task(handle.aresult(timeout=30))
    await labour.aend(Done('{"number": 7, "issued": "2026-01-02"}'))
    assert await waiting == Invoice(7, date(2026, 1, 2))


async def test_a_result_is_awaited_through_retries(
    app: App, task: Task[[], Invoice, Invoice], labour: Labour
) -> None:
    handle = await task.aenqueue()
    waiting = asyncio.create_task(handle.aresult(timeout=30))
    await labour.aend(raised(ValueError("not yet")))
    assert (await app.jobs.aget(handle.id)).failures == 1
    await labour.aend(Done('{"number": 1, "issued": "2026-01-02"}'))
    assert (await waiting).number == 1


def test_a_result_that_no_longer_fits_the_annotation_is_given_as_it_is(
    task: Task[[], Invoice, Invoice], labour: Labour
) -> None:
    handle = task.enqueue()
    labour.complete('{"number": "seven"}')
    assert handle.result(timeout=5) == {"number": "seven"}  # type: ignore[comparison-overlap]


async def test_a_result_that_was_not_kept_is_an_error_and_its_record_says_why(
    app: App, task: Task[[], Invoice, Invoice], labour: Labour
) -> None:
    handle = await task.aenqueue()
    await labour.aend(Done('{"unstorable_result": "is too large"}'))
    with pytest.raises(ResultUnavailable, match="completed, but its result was not kept: is too large") as caught:
        await handle.aresult(timeout=5)
    assert (caught.value.code, caught.value.job_id) == ("result_unavailable", handle.id)
    job = await app.jobs.aget(handle.id)
    assert (job.status, job.result) == (Status.COMPLETED, {"unstorable_result": "is too large"})


def test_a_dead_job_raises_with_its_reason(task: Task[[], Invoice, Invoice], labour: Labour) -> None:
    handle = task.enqueue()
    labour.fail(Dead("no such customer"))
    with pytest.raises(JobDead, match="is dead: no such customer") as caught:
        handle.result(timeout=5)
    assert (caught.value.job_id, caught.value.reason) == (handle.id, "no such customer")


def test_a_job_that_used_up_its_attempts_raises_so(task: Task[[], Invoice, Invoice], labour: Labour) -> None:
    handle = task.using(max_attempts=1).enqueue()
    labour.fail(ValueError("no"))
    with pytest.raises(JobDead, match="failed 1 of 1 attempts"):
        handle.result(timeout=5)


def test_a_job_that_cancelled_itself_raises_so(task: Task[[], Invoice, Invoice], labour: Labour) -> None:
    handle = task.enqueue()
    labour.fail(Cancel("not wanted"))
    with pytest.raises(JobCancelled, match="was cancelled: not wanted"):
        handle.result(timeout=5)


def test_a_job_that_an_operator_cancelled_raises_so(app: App, task: Task[[], Invoice, Invoice]) -> None:
    handle = task.enqueue()
    assert app.jobs.cancel(handle.id, "too late").status is Status.CANCELLED
    with pytest.raises(JobCancelled, match="too late") as caught:
        handle.result()
    assert caught.value.job_id == handle.id


def test_a_job_that_is_not_there_is_not_waited_for(app: App) -> None:
    handle: Handle[int] = Handle(app, str(uuid4()))
    with pytest.raises(JobNotFound, match=handle.id):
        handle.result(timeout=60)


def test_a_job_that_is_dropped_while_awaited_is_not_found(
    app: App, task: Task[[], Invoice, Invoice], labour: Labour
) -> None:
    handle = task.enqueue()
    labour.complete('{"number": 7, "issued": "2026-01-02"}')
    app.jobs.delete(handle.id)
    with pytest.raises(JobNotFound):
        handle.result(timeout=60)


@pytest.mark.parametrize("timeout", [0, 0.05])
def test_waiting_ends_with_the_time(task: Task[[], Invoice, Invoice], timeout: float) -> None:
    handle = task.enqueue()
    with pytest.raises(TimeoutError) as caught:
        handle.result(timeout=timeout)
    assert str(caught.value) == f"job {handle.id} is still pending after {timeout:g} s; no worker is alive"


async def test_waiting_in_vain_says_how_far_the_job_was_and_blames_no_worker_that_lives(
    app: App, task: Task[[], Invoice, Invoice]
) -> None:
    handle = await task.using(delay=60).aenqueue()
    await (await app._ready()).workers.beat(worker_info())
    with pytest.raises(TimeoutError, match=rf"^job {handle.id} is still scheduled after 0\.05 s$"):
        await handle.aresult(timeout=0.05)


def test_no_time_at_all_is_enough_for_a_job_that_has_ended(task: Task[[], Invoice, Invoice], labour: Labour) -> None:
    handle = task.enqueue()
    labour.complete('{"number": 7, "issued": "2026-01-02"}')
    assert handle.result(timeout=0).number == 7


def test_a_handle_shows_its_id_and_whether_it_stood(app: App, task: Task[[], Invoice, Invoice]) -> None:
    first = task.using(idempotency_key="k").enqueue()
    second = task.using(idempotency_key="k").enqueue()
    assert [repr(first), repr(second)] == [f"Handle({first.id!r})", f"Handle({first.id!r}, existing=True)"]


def test_a_handle_of_many_is_typed_by_its_task(app: App, task: Task[[], Invoice, Invoice], labour: Labour) -> None:
    (handle,) = app.enqueue_many([task.job()])
    labour.complete('{"number": 7, "issued": "2026-01-02"}')
    assert handle.result(timeout=5) == Invoice(7, date(2026, 1, 2))
