"""app.jobs.why: why a job does not run, through the client."""

from uuid import uuid4

import pytest

from tests.client.labour import Labour
from tests.support.seed import worker_info
from windlass import App, Dead, JobNotFound, Reason, Task, Why
from windlass.core.stats.meter import Meter, histogram


@pytest.fixture
def task(app: App) -> Task[[int], None, None]:
    """A task to enqueue."""

    @app.task(type="t")
    def task(number: int) -> None: ...

    return task


def test_a_waiting_job_tells_what_holds_it_first(app: App, task: Task[[int], None, None]) -> None:
    id_ = task.enqueue(1).id
    app.queues.pause("default")
    why = app.jobs.why(id_)
    assert isinstance(why, Why)
    assert isinstance(why.first, Reason)
    assert [reason.code for reason in why.reasons] == ["paused", "no_worker"]
    assert (why.id, why.type, why.queue, why.status) == (id_, "t", "default", "pending")
    assert why.first is why.reasons[0]


async def test_both_forms_tell_the_same(app: App, task: Task[[int], None, None]) -> None:
    handle = await task.aenqueue(1)
    why = await app.jobs.awhy(handle.id)
    assert why.first.code == "no_worker"


def test_a_job_that_is_not_there_is_not_found(app: App) -> None:
    with pytest.raises(JobNotFound):
        app.jobs.why(str(uuid4()))


def test_a_start_is_estimated_from_what_ended_lately(app: App, task: Task[[int], None, None]) -> None:
    ids = [handle.id for handle in app.enqueue_many([task.job(number) for number in range(200)])]

    async def work() -> None:
        store = await app._ready()
        await store.workers.beat(worker_info(slots=1))
        await store.stats.record([Meter(queue="default", type="t", completed=100, run=histogram([1000]))])

    app._portal().run(work())
    first, last = app.jobs.why(ids[0]), app.jobs.why(ids[-1])
    assert first.first.code == "next"
    assert first.estimated_start is not None
    assert (first.estimated_start - first.at).total_seconds() <= 1
    assert (last.first.code, last.first.count) == ("behind", 199)
    assert last.earliest is not None
    assert last.estimated_start is not None
    assert last.latest is not None
    assert first.estimated_start < last.estimated_start
    assert last.at <= last.earliest <= last.estimated_start <= last.latest


def test_a_finished_job_tells_how_it_ended(app: App, task: Task[[int], None, None], labour: Labour) -> None:
    id_ = task.enqueue(1).id
    labour.fail(Dead("hopeless"))
    why = app.jobs.why(id_)
    assert (why.first.code, why.first.do) == ("dead", f"to run it again: windlass jobs retry {id_}")
    assert "hopeless" in why.first.text
