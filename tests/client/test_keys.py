"""using(idempotency_key=…, idempotency_window=…, on_conflict=…, expires=…), as a program says it."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.client.labour import Labour, total
from windlass import App, InvalidOption, JobCancelled, KeyConflict, Status, Task


@pytest.fixture
def task(app: App) -> Task[[int], int, int]:
    """A task to enqueue."""

    @app.task(type="t")
    def task(number: int) -> int:
        return number

    return task


def test_the_existing_job_is_the_answer(app: App, task: Task[[int], int, int]) -> None:
    first = task.using(idempotency_key="k").enqueue(1)
    second = task.using(idempotency_key="k", on_conflict="existing").enqueue(2)
    assert (second.id, first.existing, second.existing) == (first.id, False, True)
    assert total(app) == 1


def test_a_debounced_call_keeps_the_newest_arguments(app: App, task: Task[[int], int, int]) -> None:
    save = task.using(idempotency_key="save:7", on_conflict="replace", delay=5)
    first, second = save.enqueue(1), save.enqueue(2)
    assert (first.existing, second.existing) == (False, False)
    assert app.jobs.get(second.id).payload == {"number": 2}
    with pytest.raises(JobCancelled, match=f"replaced by {second.id}"):
        first.result(timeout=1)


def test_a_conflict_is_raised_with_the_id_of_the_existing_job(app: App, task: Task[[int], int, int]) -> None:
    first = task.using(idempotency_key="k").enqueue(1)
    once = task.using(idempotency_key="k", on_conflict="raise")
    with pytest.raises(KeyConflict, match=f"^idempotency key 'k' is held by job {first.id}$") as caught:
        app.enqueue_many([task.job(5), once.job(2)])
    assert (caught.value.job_id, caught.value.code) == (first.id, "key_conflict")
    assert total(app) == 1


@pytest.mark.parametrize("window", [3600, timedelta(hours=1)], ids=["seconds", "timedelta"])
def test_a_key_stays_taken_for_its_window(
    app: App, task: Task[[int], int, int], labour: Labour, window: float | timedelta
) -> None:
    first = task.using(idempotency_key="k", idempotency_window=window).enqueue(1)
    labour.complete("1")
    again = task.using(idempotency_key="k").enqueue(2)
    assert (again.id, again.existing, again.result(timeout=1)) == (first.id, True, 1)
    assert app.jobs.get(first.id).idempotency_window == 3600


def test_options_may_be_said_one_after_the_other(app: App, task: Task[[int], int, int]) -> None:
    hasty = task.using(on_conflict="raise", expires=5)
    with pytest.raises(InvalidOption, match=r"^on_conflict: has no effect without an idempotency_key"):
        hasty.enqueue(1)
    moment = datetime.now(UTC) + timedelta(days=1)
    handle = hasty.using(idempotency_key="k").using(expires=moment).enqueue(1)
    assert app.jobs.get(handle.id).expires_at == moment


@pytest.mark.parametrize("expires", [3600, timedelta(hours=1)], ids=["seconds", "timedelta"])
def test_a_job_expires_after_a_time(app: App, task: Task[[int], int, int], expires: float | timedelta) -> None:
    job = app.jobs.get(task.using(expires=expires).enqueue(1).id)
    assert job.expires_at == job.created_at + timedelta(hours=1)


async def test_a_job_whose_expiry_has_passed_is_cancelled_and_its_waiter_notified(
    app: App, task: Task[[int], int, int]
) -> None:
    handle = await task.using(expires=datetime.now(UTC) - timedelta(seconds=1)).aenqueue(1)
    assert len(await (await app._ready()).jobs.expire(10)) == 1
    with pytest.raises(JobCancelled, match="was cancelled: expired"):
        await handle.aresult(timeout=1)
    assert (await app.jobs.aget(handle.id)).status is Status.CANCELLED
