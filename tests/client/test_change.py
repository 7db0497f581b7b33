"""app.jobs.change, run_now and find."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.client.labour import Labour
from windlass import App, Dead, InvalidName, InvalidPayload, JobNotFound, KeyConflict, NotAllowedNow, Status, Task
from windlass.store.redis.operator import read_jobs as redis_walk
from windlass.store.sql import read_jobs

LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def task(app: App) -> Task[[int], None, None]:
    """A task to enqueue."""

    @app.task(type="t")
    def task(number: int) -> None: ...

    return task


def test_a_waiting_job_is_changed_and_shown(app: App, task: Task[[int], None, None]) -> None:
    id_ = task.enqueue(1).id
    job = app.jobs.change(id_, priority=7, run_at=LATER, payload={"number": 2}, queue="mail")
    assert (job.id, job.priority, job.run_at, job.payload, job.queue) == (id_, 7, LATER, {"number": 2}, "mail")
    assert job.status is Status.SCHEDULED
    assert job == app.jobs.get(id_)


def test_a_dead_job_is_repaired_and_retried_in_one_call(app: App, task: Task[[int], None, None]) -> None:
    id_ = task.enqueue(1).id
    Labour(app).fail(Dead("hopeless"))
    with pytest.raises(InvalidPayload):
        app.jobs.retry(id_, payload={"number": "two"})
    assert (app.jobs.get(id_).status, app.jobs.count(status="dead")) == (Status.DEAD, 1)
    job = app.jobs.retry(id_, payload={"number": 2})
    assert (job.status, job.payload, app.jobs.count(status="dead")) == (Status.PENDING, {"number": 2}, 0)


async def test_the_async_forms_do_the_same(app: App, task: Task[[int], None, None]) -> None:
    id_ = (await task.using(delay=3600).aenqueue(1)).id
    assert (await app.jobs.achange(id_, delay=timedelta(days=1))).status is Status.SCHEDULED
    assert (await app.jobs.arun_now(id_)).status is Status.PENDING
    assert await app.jobs.afind(id_[:20]) == id_


def test_the_payload_of_a_type_that_this_app_does_not_know_is_any_json_object(
    app: App, address: str, task: Task[[int], None, None]
) -> None:
    id_ = task.enqueue(1).id
    stranger = App(address)
    try:
        assert stranger.jobs.change(id_, payload={"anything": [1]}).payload == {"anything": [1]}
    finally:
        stranger.close()


@pytest.mark.parametrize("verb", ["change", "run_now"])
def test_a_finished_job_is_refused_by_its_status(
    app: App, task: Task[[int], None, None], labour: Labour, verb: str
) -> None:
    id_ = task.enqueue(1).id
    labour.complete()
    options = {"priority": 1} if verb == "change" else {}
    with pytest.raises(NotAllowedNow, match=f"cannot {verb.split('_')[0]} job {id_}: it is completed"):
        getattr(app.jobs, verb)(id_, **options)


@pytest.mark.parametrize("options", [{"priority": 1}, {"payload": {"number": 1}}], ids=str)
def test_a_job_that_is_not_there_is_said(app: App, options: dict[str, Any]) -> None:
    id_ = str(uuid4())
    with pytest.raises(JobNotFound, match=f"no job {id_}"):
        app.jobs.change(id_, **options)


def test_a_job_does_not_go_where_its_key_is_held(app: App, task: Task[[int], None, None]) -> None:
    here = task.using(idempotency_key="k").enqueue(1)
    there = task.using(idempotency_key="k", queue="mail").enqueue(1)
    with pytest.raises(KeyConflict, match=f"^idempotency key 'k' is held by job {there.id}$"):
        app.jobs.change(here.id, queue="mail")


def test_a_scheduled_job_runs_now(app: App, task: Task[[int], None, None], labour: Labour) -> None:
    id_ = task.using(run_at=LATER).enqueue(1).id
    job = app.jobs.run_now(id_)
    assert job.status is Status.PENDING
    assert job.run_at < LATER
    labour.complete()
    assert app.jobs.get(id_).status is Status.COMPLETED


def test_children_are_found_by_their_parent(app: App, task: Task[[int], None, None], labour: Labour) -> None:
    parent = task.enqueue(0)
    labour.complete()
    children = [task.using(parent=parent.id).enqueue(n).id for n in (1, 2)]
    labour.complete()
    task.using(parent=str(uuid4())).enqueue(3)
    assert [job.id for job in app.jobs.list(parent=parent.id).items] == children[::-1]
    assert {job.status for job in app.jobs.list(parent=parent.id).items} == {Status.PENDING, Status.COMPLETED}


IDS = [
    "01990000-0000-7000-8000-000000000001",
    "01990000-0000-7000-8000-0000000000ff",
    "01991111-0000-7000-8000-0000000000aa",
]


@pytest.mark.parametrize(
    ("beginning", "index"), [("01991", 2), ("01991111-0", 2), (IDS[0][:-1], 0), (IDS[1], 1), (IDS[1].upper(), 1)]
)
def test_an_id_is_found_by_its_beginning(app: App, task: Task[[int], None, None], beginning: str, index: int) -> None:
    for id_ in IDS:
        task.using(id=id_).enqueue(1)
    assert app.jobs.find(beginning) == IDS[index]


def test_a_beginning_that_is_not_enough_says_how_many_there_are(app: App, task: Task[[int], None, None]) -> None:
    for id_ in IDS:
        task.using(id=id_).enqueue(1)
    with pytest.raises(InvalidName, match=r"^id: 3 jobs have an id that begins with '0199'; give more of it"):
        app.jobs.find("0199")
    app.enqueue_many([task.job(n) for n in range(600)])
    with pytest.raises(InvalidName, match=r"^id: at least 500 jobs"):
        app.jobs.find(app.jobs.list(limit=1).items[0].id[:5])


@pytest.mark.parametrize(
    ("end", "index"), [("0001", 0), ("00FF", 1), ("…00aa", 2), ("-8000-0000000000aa", 2), (IDS[1][1:], 1)]
)
def test_an_id_is_found_by_its_end(app: App, task: Task[[int], None, None], end: str, index: int) -> None:
    for id_ in IDS:
        task.using(id=id_).enqueue(1)
    assert app.jobs.find(end) == IDS[index]


def test_a_beginning_wins_over_an_end_and_an_end_of_several_is_said(app: App, task: Task[[int], None, None]) -> None:
    begins, ends = "0abc0000-0000-7000-8000-000000000001", "0abd0000-0000-7000-8000-000000000abc"
    task.using(id=ends).enqueue(1)
    assert app.jobs.find("0abc") == ends
    task.using(id=begins).enqueue(1)
    assert app.jobs.find("0abc") == begins
    task.using(id="0abe0000-0000-7000-8000-100000000abc").enqueue(1)
    with pytest.raises(InvalidName, match=r"^id: 2 jobs have an id that ends with '00abc'; give more of it"):
        app.jobs.find("00abc")


def test_where_not_every_job_is_looked_at_an_end_must_be_sure(
    app: App, task: Task[[int], None, None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_walk, "MAX_WALKED", 2)
    monkeypatch.setattr(read_jobs, "MAX_ROWS_PER_PAGE", 2)
    older = [f"0198{number:04x}-0000-7000-8000-{number:012x}" for number in range(20)]  # several in each bucket
    for id_ in (*older, *IDS):
        task.using(id=id_).enqueue(1)
    with pytest.raises(InvalidName, match=r"^id: older jobs may end with '00aa' too; give at least 8 characters"):
        app.jobs.find("00aa")
    assert app.jobs.find("000000aa") == IDS[2]
    with pytest.raises(JobNotFound, match=r"no job 00000bbb… \(suffixes are searched among the newest jobs only\)"):
        app.jobs.find("00000bbb")


def test_a_prefix_that_no_job_has_finds_no_job(app: App) -> None:
    with pytest.raises(JobNotFound, match="no job 0199abcd"):
        app.jobs.find("0199ABCD")


@pytest.mark.parametrize("beginning", ["019", "0199zz", "0199-", "%%%%", "0199' OR 1", "0" * 37])
def test_what_can_neither_begin_nor_end_an_id_is_refused(app: App, beginning: str) -> None:
    with pytest.raises(InvalidName, match=r"^id: .* is not a UUID, nor the first or last 4 characters or more"):
        app.jobs.find(beginning)
