"""Enqueuing: when it returns, the job is stored, just as it was said."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.client.labour import Labour, only_job, total
from windlass import App, Fixed, Handle, Status, Task, UseAsync

LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def task(app: App) -> Task[[int], int, int]:
    """A task to enqueue."""

    @app.task(type="t")
    def task(number: int) -> int:
        return number

    return task


def test_a_job_is_stored_when_enqueue_returns(app: App, task: Task[[int], int, int]) -> None:
    handle = task.enqueue(42)
    job = app.jobs.get(handle.id)
    assert (job.type, job.payload, job.queue, job.status) == ("t", {"number": 42}, "default", Status.PENDING)
    assert (job.priority, job.attempt, job.max_attempts, handle.existing) == (0, 0, 3, False)


async def test_the_async_form_does_the_same(app: App, task: Task[[int], int, int]) -> None:
    handle = await task.aenqueue(42)
    job = await app.jobs.aget(handle.id)
    assert (job.type, job.payload, job.status) == ("t", {"number": 42}, Status.PENDING)


def test_ids_grow_in_the_order_of_enqueueing(task: Task[[int], int, int]) -> None:
    ids = [task.enqueue(number).id for number in range(20)]
    assert ids == sorted(ids)
    assert {UUID(id_).version for id_ in ids} == {7}


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"queue": "mail"}, {"queue": "mail"}),
        ({"priority": -32768}, {"priority": -32768}),
        ({"priority": 32767}, {"priority": 32767}),
        ({"run_at": LATER}, {"run_at": LATER, "status": Status.SCHEDULED}),
        ({"run_at": datetime(1970, 1, 1, tzinfo=UTC)}, {"status": Status.PENDING}),
        ({"idempotency_key": "ü" * 2000}, {"idempotency_key": "ü" * 2000}),
        ({"tenant": "acme"}, {"tenant": "acme"}),
        ({"max_attempts": 1000}, {"max_attempts": 1000}),
        ({"tags": ["b", "a"]}, {"tags": ("b", "a")}),
        ({"tags": []}, {"tags": ()}),
        ({"meta": {"by": ["me"]}}, {"meta": {"by": ["me"]}}),
        ({"parent": "01890000-0000-7000-8000-00000000000A"}, {"parent": "01890000-0000-7000-8000-00000000000a"}),
        ({"id": UUID("01890000-0000-7000-8000-000000000001")}, {"id": "01890000-0000-7000-8000-000000000001"}),
    ],
    ids=lambda each: str(each).partition("datetime")[0],
)
def test_an_option_is_kept_with_the_job(
    app: App, task: Task[[int], int, int], options: Any, fields: dict[str, Any]
) -> None:
    job = app.jobs.get(task.using(**options).enqueue(1).id)
    assert {name: getattr(job, name) for name in fields} == fields


@pytest.mark.parametrize("delay", [60, 60.0, timedelta(minutes=1)])
def test_a_delay_counts_from_the_stores_clock(app: App, task: Task[[int], int, int], delay: Any) -> None:
    job = app.jobs.get(task.using(delay=delay).enqueue(1).id)
    assert (job.status, job.run_at - job.created_at) == (Status.SCHEDULED, timedelta(minutes=1))


def test_options_add_up_and_the_later_one_wins(app: App, task: Task[[int], int, int]) -> None:
    urgent = task.using(priority=5, tenant="acme")
    job = app.jobs.get(urgent.using(priority=9).enqueue(1).id)
    assert (job.priority, job.tenant) == (9, "acme")
    assert app.jobs.get(urgent.enqueue(1).id).priority == 5
    assert app.jobs.get(task.enqueue(1).id).priority == 0


def test_what_the_task_says_holds_unless_the_job_says_otherwise(app: App) -> None:
    @app.task(queue="mail", priority=3, retry=Fixed(attempts=7))
    def send() -> None: ...

    said = app.jobs.get(send.enqueue().id)
    assert (said.queue, said.priority, said.max_attempts) == ("mail", 3, 7)
    other = app.jobs.get(send.using(queue="bulk", priority=0, max_attempts=1).enqueue().id)
    assert (other.queue, other.priority, other.max_attempts) == ("bulk", 0, 1)


def test_a_held_key_answers_with_the_existing_job(app: App, task: Task[[int], int, int], labour: Labour) -> None:
    keyed = task.using(idempotency_key="welcome:42")
    first, second = keyed.enqueue(1), keyed.enqueue(2)
    assert (second.id, second.existing) == (first.id, True)
    assert only_job(app).payload == {"number": 1}
    labour.complete()
    third = keyed.enqueue(3)
    assert third.existing is False
    assert third.id != first.id


def test_the_same_id_again_is_the_same_job_also_after_it_ended(
    app: App, task: Task[[int], int, int], labour: Labour
) -> None:
    id_ = str(uuid4())
    first = task.using(id=id_).enqueue(1)
    again = task.using(id=id_.upper()).enqueue(2)
    labour.complete()
    ended = task.using(id=id_).enqueue(3)
    app.jobs.delete(id_)
    dropped = task.using(id=id_).enqueue(4)
    assert [each.id for each in (first, again, ended, dropped)] == [id_] * 4
    assert [each.existing for each in (first, again, ended, dropped)] == [False, True, True, True]
    assert total(app) == 0


def test_a_payload_of_exactly_the_limit_is_taken(app: App) -> None:
    @app.task
    def keep(thing: str) -> None: ...

    text = "x" * (65_536 - len('{"thing":""}'))
    keep.enqueue(text)
    assert only_job(app).payload == {"thing": text}


BLOCKING: dict[str, Callable[[App, Task[[int], int, int], Handle[int]], Any]] = {
    "enqueue": lambda app, task, handle: task.enqueue(1),
    "enqueue_many": lambda app, task, handle: app.enqueue_many([task.job(1)]),
    "result": lambda app, task, handle: handle.result(),
    "get": lambda app, task, handle: app.jobs.get(handle.id),
    "list": lambda app, task, handle: app.jobs.list(),
    "pause": lambda app, task, handle: app.queues.pause("default"),
    "counts": lambda app, task, handle: app.stats.counts(),
}


@pytest.mark.parametrize("verb", BLOCKING)
async def test_a_blocking_verb_on_a_running_loop_is_refused_and_names_the_other(
    app: App, task: Task[[int], int, int], verb: str
) -> None:
    handle: Handle[int] = Handle(app, str(uuid4()))
    with pytest.raises(UseAsync, match=rf"^{verb}\(\) blocks .* use `await a{verb}\(\)`"):
        BLOCKING[verb](app, task, handle)
    assert sum((await app.stats.acounts()).totals.values()) == 0


def test_many_are_enqueued_at_once_in_order(app: App, task: Task[[int], int, int]) -> None:
    handles = app.enqueue_many([task.using(priority=number).job(number) for number in range(100)])
    assert [app.jobs.get(handle.id).priority for handle in handles] == list(range(100))
    assert total(app) == 100


async def test_the_async_form_of_many_does_the_same(app: App, task: Task[[int], int, int]) -> None:
    handles = await app.aenqueue_many([task.job(1), task.job(2)])
    assert [(await app.jobs.aget(handle.id)).payload["number"] for handle in handles] == [1, 2]


def test_an_empty_batch_is_enqueued_at_once(app: App) -> None:
    assert app.enqueue_many([]) == []
    assert total(app) == 0


def test_many_answer_each_with_the_existing_job(app: App, task: Task[[int], int, int]) -> None:
    keyed = task.using(idempotency_key="k")
    batch = [keyed.job(1), keyed.job(2), task.job(3)]
    handles = app.enqueue_many([*batch, batch[2]])
    assert [handle.existing for handle in handles] == [False, True, False, True]
    assert [handle.id for handle in handles] == [batch[0].id, batch[0].id, batch[2].id, batch[2].id]
    assert total(app) == 2


def test_a_job_that_is_made_is_not_enqueued(app: App, path: Path, task: Task[[int], int, int]) -> None:
    task.job(1)
    assert not path.exists()
    assert total(app) == 0


HINT = "; use enqueue(...), or using(delay=60).enqueue(...)"
LINK = "; use job(...), or in chain(...) the task itself"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        *((name, HINT) for name in ("delay", "apply_async", "send", "defer")),
        *((name, LINK) for name in ("s", "si", "signature")),
        ("enqeue", ""),
    ],
)
def test_the_verbs_of_other_queues_are_not_there_and_the_error_says_what_is(app: App, name: str, hint: str) -> None:
    @app.task
    def task() -> None: ...

    assert not hasattr(task, name)
    with pytest.raises(AttributeError) as caught:
        getattr(task, name)
    assert str(caught.value) == f"'Task' object has no attribute {name!r}{hint}"
