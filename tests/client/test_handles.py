"""A handle: its job's status, its cancellation, and its use wherever a job is named."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.client.labour import Labour
from windlass import App, ChainHandle, InvalidName, JobNotFound, NotAllowedNow, Status, Task, UseAsync, chain
from windlass.core.jobs.outcome import completed


@pytest.fixture
def task(app: App) -> Task[[int], None, None]:
    """A task to enqueue."""

    @app.task(type="t")
    def task(number: int) -> None: ...

    return task


def test_a_handle_knows_its_job(app: App, task: Task[[int], None, None], labour: Labour) -> None:
    handle = task.enqueue(1)
    assert handle.status == "pending"
    assert handle.job() == app.jobs.get(handle.id)
    labour.complete()
    assert app.jobs.get(handle).status is Status.COMPLETED


def test_a_handle_cancels_its_job(app: App, task: Task[[int], None, None]) -> None:
    cancelled = task.enqueue(1).cancel("not wanted")
    assert (cancelled.status, cancelled.reason) == (Status.CANCELLED, "not wanted")
    assert task.enqueue(2).cancel().reason == "cancelled by an operator"


async def test_on_a_loop_the_forms_with_an_a_are_used(app: App, task: Task[[int], None, None]) -> None:
    handle = await task.aenqueue(1)
    assert await handle.astatus() is Status.PENDING
    assert (await handle.ajob()).payload == {"number": 1}
    with pytest.raises(UseAsync, match="await astatus"):
        _ = handle.status
    assert (await handle.acancel()).status is Status.CANCELLED
    await app.aclose()


def test_handles_on_one_job_are_equal(app: App, task: Task[[int], None, None]) -> None:
    keyed = task.using(idempotency_key="k")
    one, same, other = keyed.enqueue(1), keyed.enqueue(2), task.enqueue(3)
    assert one == same != other
    assert len({one, same, other}) == 2
    assert one != one.id


def test_a_handle_a_job_and_a_uuid_are_taken_wherever_an_id_is(app: App, task: Task[[int], None, None]) -> None:
    handle = task.using(delay="1h").enqueue(1)
    job = app.jobs.get(handle)
    assert app.jobs.get(job) == app.jobs.get(UUID(handle.id)) == job
    child = task.using(parent=handle).enqueue(2)
    assert [each.id for each in app.jobs.list(parent=handle)] == [child.id]
    assert app.jobs.why(handle).id == handle.id
    assert len(app.jobs.links(handle)) == 1
    assert app.jobs.change(handle, priority=3).priority == 3
    assert app.jobs.run_now(handle).status is Status.PENDING
    assert app.jobs.cancel(handle).status is Status.CANCELLED
    assert app.jobs.retry(job).status is Status.PENDING
    app.jobs.cancel(job)
    app.jobs.delete(handle)
    with pytest.raises(JobNotFound):
        handle.job()


def test_cancelling_a_chain_cancels_what_has_not_begun(
    app: App, task: Task[[int], None, None], labour: Labour
) -> None:
    handle = chain(task.job(1), task.job(2), task.job(3)).enqueue()
    labour.complete()
    assert handle.cancel("not wanted").id == handle.links[1].id
    statuses = [link.status for link in handle.links]
    assert statuses == [Status.COMPLETED, Status.CANCELLED, Status.CANCELLED]
    with pytest.raises(NotAllowedNow):
        handle.cancel()


def test_a_chain_is_cancelled_as_a_whole_by_a_process_that_has_only_its_id(
    app: App, task: Task[[int], None, None], labour: Labour
) -> None:
    handle = chain(task.job(1), task.job(2), task.job(3)).enqueue()
    labour.complete()
    assert ChainHandle[None](app, handle.id).cancel("not wanted").id == handle.links[1].id
    statuses = [link.status for link in handle.links]
    assert statuses == [Status.COMPLETED, Status.CANCELLED, Status.CANCELLED]


async def test_cancelling_a_chain_stops_it_though_the_running_link_goes_on(
    app: App, task: Task[[int], None, None], labour: Labour
) -> None:
    handle = await chain(task.job(1), task.job(2), task.job(3)).aenqueue()
    store = await app._ready()
    running = await labour.aclaim(store)
    assert (await handle.acancel()).id == handle.links[1].id
    assert (await handle.links[0].ajob()).cancel_requested
    await store.jobs.settle([completed(running, None)])
    statuses = [await link.astatus() for link in handle.links]
    assert statuses == [Status.COMPLETED, Status.CANCELLED, Status.CANCELLED]
    await app.aclose()


VERBS: dict[str, Callable[[App, Any], object]] = {
    "get": lambda app, id: app.jobs.get(id),
    "why": lambda app, id: app.jobs.why(id),
    "links": lambda app, id: app.jobs.links(id),
    "cancel": lambda app, id: app.jobs.cancel(id),
    "retry": lambda app, id: app.jobs.retry(id),
    "run_now": lambda app, id: app.jobs.run_now(id),
    "change": lambda app, id: app.jobs.change(id, priority=1),
    "delete": lambda app, id: app.jobs.delete(id),
}


@pytest.mark.parametrize("verb", VERBS)
def test_text_that_is_no_id_is_that_of_no_job(app: App, verb: str) -> None:
    for text in ("order-42", "", "\x1b[31m" + "x" * 10_000):
        with pytest.raises(JobNotFound) as refused:
            VERBS[verb](app, text)
        assert len(str(refused.value)) < 200
        assert "\x1b" not in str(refused.value)
    with pytest.raises(InvalidName):
        VERBS[verb](app, 42)


def test_an_id_is_known_in_capitals_too(app: App, task: Task[[int], None, None]) -> None:
    handle = task.enqueue(1)
    assert app.jobs.get(handle.id.upper()).id == handle.id


def test_many_handles_can_be_awaited_and_sorted_into_a_dict(app: App, task: Task[[int], None, None]) -> None:
    async def statuses() -> dict[Any, Status]:
        handles = await app.aenqueue_many([task.job(1), task.job(2)])
        found = dict(zip(handles, await asyncio.gather(*[each.astatus() for each in handles]), strict=True))
        await app.aclose()
        return found

    assert set(asyncio.run(statuses()).values()) == {Status.PENDING}
