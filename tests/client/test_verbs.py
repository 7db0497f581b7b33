"""app.jobs, app.queues, app.workers, app.stats: what users and programs do with jobs that are there."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.client.labour import Labour, total
from tests.support.seed import dead, open_lease, request, worker_info
from windlass import App, Dead, InvalidOption, JobNotFound, KeyConflict, NotAllowedNow, Status, Task
from windlass.client.runtime.portal import blocking
from windlass.client.verbs.jobs import Jobs
from windlass.client.verbs.queues import Queues
from windlass.client.verbs.stats import Stats, Workers


@pytest.fixture
def task(app: App) -> Task[[int], None, None]:
    """A task to enqueue."""

    @app.task(type="t")
    def task(number: int) -> None: ...

    return task


@pytest.mark.parametrize("face", [Jobs, Queues, Workers, Stats], ids=lambda face: face.__name__)
def test_every_verb_has_both_forms_and_they_are_one(face: type) -> None:
    blocked = {name: member for name, member in vars(face).items() if isinstance(member, blocking)}
    awaited = [name for name, member in vars(face).items() if inspect.iscoroutinefunction(member) and name[0] != "_"]
    assert sorted(awaited) == sorted(f"a{name}" for name in blocked)
    for name, member in blocked.items():
        assert member._method is vars(face)[f"a{name}"]
        assert member.__doc__


def test_a_page_continues_where_the_one_before_ended(app: App, task: Task[[int], None, None]) -> None:
    newest_first = [handle.id for handle in app.enqueue_many([task.job(number) for number in range(7)])][::-1]
    seen, cursor = [], None
    for expected in (3, 3, 1):
        page = app.jobs.list(limit=3, cursor=cursor)
        assert len(page.items) == expected
        seen += [job.id for job in page.items]
        cursor = page.next_cursor
    assert (seen, cursor) == (newest_first, None)


def test_a_list_holds_what_matches_every_filter(app: App, task: Task[[int], None, None]) -> None:
    wanted = task.using(queue="mail", tenant="acme", tags=["x", "y"]).enqueue(1)
    task.using(queue="mail", tenant="acme").enqueue(2)
    task.using(queue="mail", tags=["x"]).enqueue(3)
    task.using(tenant="acme", tags=["x"]).enqueue(4)
    page = app.jobs.list(status=["pending", "dead"], type="t", queue="mail", tenant="acme", tag="x")
    assert [job.id for job in page.items] == [wanted.id]


def test_a_waiting_job_is_cancelled_with_its_reason(app: App, task: Task[[int], None, None]) -> None:
    job = app.jobs.cancel(task.enqueue(1).id, "not needed")
    assert (job.status, job.reason, job.cancel_requested) == (Status.CANCELLED, "not needed", False)


async def test_a_running_job_is_asked_to_stop(app: App, task: Task[[int], None, None], labour: Labour) -> None:
    handle = await task.aenqueue(1)
    await labour.aclaim(await app._ready())
    job = await app.jobs.acancel(handle.id)
    assert (job.status, job.cancel_requested) == (Status.RUNNING, True)
    with pytest.raises(NotAllowedNow, match=r"cannot delete job .*: it is running"):
        await app.jobs.adelete(handle.id)


def test_a_dead_job_is_retried_with_a_fresh_budget(app: App, task: Task[[int], None, None], labour: Labour) -> None:
    handle = task.enqueue(1)
    labour.fail(Dead("no"))
    job = app.jobs.retry(handle.id)
    assert (job.status, job.attempt, job.failures, job.reason) == (Status.PENDING, 1, 0, None)


def test_a_retry_is_refused_while_another_job_holds_the_key(
    app: App, task: Task[[int], None, None], labour: Labour
) -> None:
    keyed = task.using(idempotency_key="k")
    first = keyed.enqueue(1)
    labour.fail(Dead("no"))
    second = keyed.enqueue(2)
    with pytest.raises(KeyConflict, match=f"is held by job {second.id}") as caught:
        app.jobs.retry(first.id)
    assert caught.value.job_id == second.id


@pytest.mark.parametrize("verb", ["retry", "delete"])
def test_a_move_that_the_status_does_not_allow_is_refused(app: App, task: Task[[int], None, None], verb: str) -> None:
    handle = task.enqueue(1)
    with pytest.raises(NotAllowedNow, match=f"cannot {verb} job {handle.id}: it is pending"):
        getattr(app.jobs, verb)(handle.id)
    assert app.jobs.get(handle.id).status is Status.PENDING


@pytest.mark.parametrize("verb", ["get", "cancel", "retry", "delete"])
def test_a_job_that_is_not_there_is_said(app: App, verb: str) -> None:
    id_ = str(uuid4())
    with pytest.raises(JobNotFound, match=f"no job {id_}"):
        getattr(app.jobs, verb)(id_)


def test_a_deleted_job_is_gone(app: App, task: Task[[int], None, None], labour: Labour) -> None:
    handle = task.enqueue(1)
    labour.complete()
    app.jobs.delete(handle.id)
    assert total(app) == 0


BY_FILTER: dict[str, tuple[Callable[[App], int], str]] = {
    "retry_all": (lambda app: app.jobs.retry_all(status="dead", queue="mail"), "pending"),
    "delete_all": (lambda app: app.jobs.delete_all(status=["dead"], queue="mail"), "gone"),
    "cancel_all": (
        lambda app: app.jobs.cancel_all(reason="all", queue="mail", status="scheduled"),
        "cancelled",
    ),
}


@pytest.mark.parametrize("verb", BY_FILTER)
async def test_a_verb_by_filter_meets_every_match_once_and_nothing_else(
    app: App, task: Task[[int], None, None], verb: str
) -> None:
    """More than one page of them."""
    if verb == "cancel_all":
        await app.aenqueue_many([task.using(queue="mail", delay=60).job(number) for number in range(1201)])
    else:
        await app.aenqueue_many([task.using(queue="mail").job(number) for number in range(1201)])
        await _kill_all(app, "mail")
    other = await task.aenqueue(0)
    do, becomes = BY_FILTER[verb]
    assert await asyncio.to_thread(do, app) == 1201
    counts = (await app.stats.acounts()).queues
    assert counts.get("mail", {}).get(becomes, 0) == (0 if becomes == "gone" else 1201)
    assert sum(counts.get("mail", {}).values()) == (0 if becomes == "gone" else 1201)
    assert (await app.jobs.aget(other.id)).status is Status.PENDING


def test_a_verb_by_filter_ends_also_where_it_may_not_move_what_it_meets(
    app: App, task: Task[[int], None, None]
) -> None:
    app.enqueue_many([task.job(number) for number in range(3)])
    assert [app.jobs.retry_all(queue="default"), app.jobs.delete_all(type="t")] == [0, 0]
    assert app.stats.counts().totals["pending"] == 3


async def _kill_all(app: App, queue: str) -> None:
    store = await app._ready()
    await open_lease(store)
    while jobs := await store.jobs.claim(request(queues=(queue,), most=2000, limit=2000)):
        await store.jobs.settle([dead(job) for job in jobs])


def test_a_queue_is_paused_and_resumed(app: App) -> None:
    app.queues.add("mail")
    assert app.queues.pause("mail").paused
    assert app.queues.get("mail").paused_until is None
    assert not app.queues.resume("mail").paused
    paused = app.queues.pause("mail", 3600)
    assert paused.paused_until is not None
    assert [queue.name for queue in app.queues.list()] == ["mail"]


def test_counts_are_by_queue_and_in_all(app: App, task: Task[[int], None, None]) -> None:
    app.enqueue_many([task.job(1), task.job(2), task.using(queue="mail", delay=60).job(3)])
    counts = app.stats.counts()
    assert counts.queues["default"]["pending"] == 2
    assert counts.queues["mail"]["scheduled"] == 1
    assert {name: jobs for name, jobs in counts.totals.items() if jobs} == {"pending": 2, "scheduled": 1}
    assert list(counts.totals) == list(Status)


async def test_workers_are_listed_while_they_live(app: App) -> None:
    store = await app._ready()
    await store.workers.beat(worker_info("w1", slots=3))
    assert [(worker.id, worker.slots, worker.running) for worker in await app.workers.alist()] == [("w1", 3, 0)]
    await store.workers.unregister("w1")
    assert await app.workers.alist() == []


def test_a_filter_that_does_not_exist_is_refused(app: App) -> None:
    wrong: Any = {"stauts": "dead"}
    with pytest.raises(InvalidOption, match="stauts"):
        app.jobs.delete_all(**wrong)
