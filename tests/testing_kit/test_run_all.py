"""run_all: the walk of a job, here and now."""

import asyncio
import contextvars
import threading
from datetime import timedelta

import pytest

from windlass import App, Cancel, Context, Dead, Fixed, InvalidOption, Retry, Snooze, Status, UseAsync
from windlass.testing import enqueued, run_all


def test_what_is_due_runs_and_its_result_is_kept(app: App) -> None:
    @app.task
    def double(number: int) -> int:
        return 2 * number

    job = double.enqueue(21)
    report = run_all(app)
    assert [each.id for each in report.completed] == [job.id]
    assert job.result(timeout=1) == 42
    assert report.attempts == 1


def test_nothing_due_is_nothing_run(app: App) -> None:
    report = run_all(app)
    assert (report.jobs, report.attempts, report.errors) == ((), 0, ())
    assert repr(report) == "<nothing ran>"


def test_an_async_handler_runs_too(app: App) -> None:
    @app.task
    async def wait() -> str:
        await asyncio.sleep(0)
        return "done"

    wait.enqueue()
    assert [job.result for job in run_all(app).completed] == ["done"]


def test_children_and_their_children_run_as_well_whatever_their_queue(app: App) -> None:
    @app.task
    def count_down(left: int) -> None:
        if left:
            count_down.using(queue=f"q{left}").enqueue(left - 1)

    @app.task
    async def acount_down(left: int) -> None:
        if left:
            await acount_down.aenqueue(left - 1)

    count_down.enqueue(3)
    acount_down.enqueue(3)
    report = run_all(app)
    assert [job.payload["left"] for job in report.completed if job.type == "count_down"] == [3, 2, 1, 0]
    assert len(report.completed) == 8


def test_higher_priorities_run_first(app: App) -> None:
    ran: list[int] = []

    @app.task
    def note(priority: int) -> None:
        ran.append(priority)

    for priority in (0, 5, -5):
        note.using(priority=priority).enqueue(priority)
    run_all(app)
    assert ran == [5, 0, -5]


def test_a_task_for_a_process_of_its_own_runs_here(app: App) -> None:
    ran: list[int] = []

    @app.task(run_in="process")
    def render(page: int) -> None:
        ran.append(page)

    render.enqueue(1)
    run_all(app)
    assert ran == [1]


def test_plain_handlers_run_in_the_thread_of_the_test_and_see_its_context(app: App) -> None:
    user = contextvars.ContextVar("user", default="nobody")

    @app.task
    def where() -> list[str]:
        seen = user.get()
        user.set("changed by the handler")
        return [threading.current_thread().name, seen]

    user.set("ann")
    where.enqueue()
    assert run_all(app).completed[0].result == [threading.current_thread().name, "ann"]
    assert user.get() == "ann"


def test_a_failed_job_waits_for_its_time_without_jitter(app: App) -> None:
    @app.task(retry=Fixed(attempts=2, base=60, jitter=1))
    def fail() -> None:
        raise ValueError("no")

    fail.enqueue()
    first = run_all(app)
    assert [job.status for job in first.jobs] == ["failed"]
    assert [str(error) for error in first.errors] == ["no"]
    app.clock.advance(59.999)
    assert run_all(app).attempts == 0
    app.clock.advance(0.001)
    second = run_all(app)
    assert [(job.status, job.attempt) for job in second.dead] == [("dead", 2)]
    assert repr(second) == "<1 dead; fail: ValueError: no>"


def test_advancing_goes_through_retries_snoozes_and_delays(app: App) -> None:
    @app.task(retry=Fixed(attempts=3, base=60))
    def third_time(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return ctx.attempt

    @app.task
    def later(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise Snooze(timedelta(days=1))

    begun = app.clock.now
    third_time.enqueue()
    later.using(delay=3600).enqueue()
    report = run_all(app, advance=True)
    assert [job.type for job in report.completed] == ["third_time", "later"]
    assert (report.attempts, len(report.errors)) == (5, 2)
    assert app.clock.now == begun + timedelta(days=1, hours=1)


def test_handlers_decide_their_outcome_as_ever(app: App) -> None:
    @app.task
    def end(how: str) -> None:
        raise {"dead": Dead("hopeless"), "cancel": Cancel("unwanted"), "retry": Retry(after=5)}[how]

    for how in ("dead", "cancel", "retry"):
        end.enqueue(how)
    report = run_all(app)
    assert [job.reason for job in report.dead] == ["hopeless"]
    assert [job.reason for job in report.cancelled] == ["unwanted"]
    assert [job.payload for job in report.failed] == [{"how": "retry"}]
    assert [type(error) for error in report.errors] == [Dead, Retry]


def test_an_error_can_be_raised_where_the_test_is_and_is_recorded_all_the_same(app: App) -> None:
    @app.task
    def fail(n: int) -> None:
        raise ValueError(f"no {n}")

    fail.enqueue(1)
    fail.enqueue(2)
    with pytest.raises(ValueError, match="no 1"):
        run_all(app, raise_errors=True)
    assert [(job.payload["n"], job.status) for job in enqueued(app)] == [(1, "failed"), (2, "pending")]


def test_a_snooze_is_no_error(app: App) -> None:
    @app.task
    def snooze() -> None:
        raise Snooze(5)

    snooze.enqueue()
    assert run_all(app, raise_errors=True).errors == ()


def test_what_a_handler_says_is_kept_with_its_job(app: App) -> None:
    @app.task
    def talk(ctx: Context) -> None:
        ctx.progress(1, 2, "half")
        ctx.log("hello")

    job = talk.enqueue()
    run_all(app)
    found = app.jobs.get(job.id)
    assert found.progress is not None
    assert (found.progress.note, [line.text for line in found.logs]) == ("half", ["hello"])


def test_an_async_handler_that_takes_too_long_is_ended(app: App) -> None:
    @app.task(timeout=0.05, max_attempts=1)
    async def hang() -> None:
        await asyncio.Event().wait()

    hang.enqueue()
    (job,) = run_all(app).dead
    assert job.error is not None
    assert job.error.type == "TimeoutError"


def test_only_the_queues_asked_for_run(app: App) -> None:
    @app.task
    def where(queue: str) -> None: ...

    for queue in ("a", "b", "c"):
        where.using(queue=queue).enqueue(queue)
    assert [job.queue for job in run_all(app, queues=["c", "a"]).jobs] == ["c", "a"]
    assert [job.queue for job in enqueued(app)] == ["b"]


def test_a_paused_queue_does_not_run(app: App) -> None:
    @app.task
    def work() -> None: ...

    work.enqueue()
    app.queues.pause("default")
    assert run_all(app).attempts == 0
    app.queues.resume("default")
    assert run_all(app).attempts == 1


def test_the_settings_of_a_queue_hold(app: App) -> None:
    app.queue("mail", max_attempts=2, retry=Fixed(base=5))

    @app.task(queue="mail")
    def fail() -> None:
        raise ValueError("no")

    fail.enqueue()
    begun = app.clock.now
    assert len(run_all(app, advance=True).dead) == 1
    assert app.clock.now - begun == timedelta(seconds=5)


def test_a_job_that_comes_back_for_ever_is_an_error_and_not_a_test_that_hangs(app: App) -> None:
    @app.task
    def again() -> None:
        again.enqueue()

    again.enqueue()
    with pytest.raises(RuntimeError, match="20 attempts, and 'again' is due again"):
        run_all(app, limit=20)
    assert [job.status for job in enqueued(app)] == [Status.PENDING]


def test_a_handler_may_move_the_clock_as_far_as_it_likes(app: App) -> None:
    @app.task
    def skip() -> None:
        app.clock.advance(days=400)

    job = skip.enqueue()
    assert len(run_all(app).completed) == 1
    assert app.jobs.get(job.id).status == "completed"


def test_an_interrupt_stops_the_test_and_puts_the_job_back(app: App) -> None:
    @app.task
    def interrupted() -> None:
        raise KeyboardInterrupt

    interrupted.enqueue()
    with pytest.raises(KeyboardInterrupt):
        run_all(app)
    assert [job.status for job in enqueued(app)] == ["pending"]


async def test_the_blocking_form_names_the_other_on_a_running_loop(app: App) -> None:
    with pytest.raises(UseAsync, match="await arun_all"):
        run_all(app)


def test_an_option_that_does_not_exist_is_refused(app: App) -> None:
    with pytest.raises(InvalidOption, match="advanced: is not an option of run_all; did you mean advance"):
        run_all(app, advanced=True)  # type: ignore[call-arg]
