"""Schedules as a program has them: declared beside tasks, changed at run time, run under test."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.support.seed import new_job, worker_info
from windlass import (
    App,
    ConfigError,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    Job,
    ScheduleNotFound,
    UseAsync,
)
from windlass.core.schedules.schedule import settings
from windlass.testing import ManualClock, run_all

NINE = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
"""A Monday, nine o'clock in Berlin."""


@pytest.fixture
def app() -> Iterator[App]:
    made = App.testing(ManualClock(datetime(2026, 3, 1, 12, 0, tzinfo=UTC)))
    yield made
    made.close()


async def test_a_schedule_of_another_app_is_not_taken_for_one_that_was_removed(app: App) -> None:
    @app.task(type="kept")
    def kept() -> None: ...

    store = await app._ready()
    for name in ("kept", "gone", "theirs"):
        job = new_job(type=name)
        await store.schedules.declare({name: settings(job, every="1h")})
    await store.workers.beat(worker_info(types=("theirs",)))
    await app.schedules.aadd("by-hand", kept.job(), every="1h")
    assert {each.name for each in await app.schedules.aundeclared()} == {"kept", "gone"}


def ran(app: App) -> list[Job]:
    return list(run_all(app).jobs)


def test_a_task_under_a_schedule_runs_at_its_times(app: App) -> None:
    @app.schedule("0 9 * * 1-5", tz="Europe/Berlin")
    @app.task
    def report() -> str:
        return "done"

    assert report() == "done", "it is a task as before"
    assert ran(app) == []
    app.clock.set(NINE)
    (job,) = ran(app)
    assert (job.type, job.schedule, job.tick, job.result) == ("report", "report", NINE, "done")
    assert ran(app) == []


def test_a_schedule_with_arguments_options_and_a_name(app: App) -> None:
    @app.task
    def clean(days: int) -> int:
        return days

    app.schedule("nightly", clean.using(queue="low", priority=3).job(7), every="10m")
    assert "low" in app.queue_names
    app.schedules.list()  # the first call to the store writes what the code declares, and the interval begins
    app.clock.advance(minutes=10)
    (job,) = ran(app)
    assert (job.schedule, job.queue, job.priority, job.result) == ("nightly", "low", 3, 7)


def test_what_is_declared_is_written_by_the_first_verb_also_if_it_comes_later(app: App) -> None:
    @app.task
    def tick() -> None: ...

    app.schedule("a", tick.job(), every=60)
    assert [each.name for each in app.schedules.list()] == ["a"]
    app.schedule("b", tick.job(), every=60)
    assert [each.name for each in app.schedules.list()] == ["a", "b"]


def test_a_mistake_is_refused_where_it_is_made_and_nothing_is_declared(app: App) -> None:
    @app.task
    def clean(days: int) -> None: ...

    with pytest.raises(InvalidTime, match="'61' at position 1 is no minute"):
        app.schedule("61 * * * *")
    with pytest.raises(InvalidTime, match="every: must be at least 1s"):
        app.schedule("s", clean.job(1), every=0)
    with pytest.raises(InvalidOption, match="needs its times"):
        app.schedule("s", clean.job(1))
    for times in ({"cron": "@daily"}, {"every": "5m"}):
        with pytest.raises(InvalidOption, match=r"job: is missing: app.schedule\(name, task.job\(...\), cron=...\)"):
            app.schedule("s", **times)  # type: ignore[call-overload]
    with pytest.raises(InvalidOption, match="every: cannot be given together with cron"):
        app.schedule("0 9 * * *", every="5m")
    with pytest.raises(InvalidPayload, match=r"days: is missing.*app.schedule\(name, clean.job\(...\), cron=...\)"):
        app.schedule("@daily")(clean)
    with pytest.raises(ConfigError, match=r"goes above @app\.task: it takes a task, not function"):
        app.schedule("@daily")(lambda: None)  # type: ignore[type-var]
    app.schedule("s", clean.job(1), every=60)
    with pytest.raises(ConfigError, match="schedule 's' is declared twice"):
        app.schedule("s", clean.job(2), every=60)
    assert [each.name for each in app.schedules.list()] == ["s"]


def test_an_operators_change_is_kept_and_can_be_reset(app: App) -> None:
    @app.task
    def report(kind: str) -> str:
        return kind

    app.schedule("daily", report.job("short"), cron="@daily", tz="Europe/Berlin")
    changed = app.schedules.set("daily", report.job("long"), every=3600)
    assert changed.in_words == "Every 1h"
    assert (changed.declared.tz, changed.rules.job.payload) == ("Europe/Berlin", '{"kind":"long"}')
    app.schedules.set("daily", jitter=0, overlap=False)
    assert app.schedules.get("daily").changed.every is not None, "what is not named stays"
    assert app.schedules.reset("daily", "every").in_words == "At 00:00 every day (Europe/Berlin)"
    back = app.schedules.reset("daily")
    assert (back.rules.overlap, back.rules.job.payload) == (True, '{"kind":"short"}')


def test_one_made_at_run_time_is_paused_run_and_removed(app: App) -> None:
    @app.task
    def ping() -> str:
        return "pong"

    made = app.schedules.add("ping", ping.job(), every=60)
    assert made.next_at == datetime(2026, 3, 1, 12, 1, tzinfo=UTC)
    assert app.schedules.pause("ping").paused
    app.clock.advance(hours=1)
    assert ran(app) == []
    handle = app.schedules.run("ping")
    (job,) = ran(app)
    assert (job.id, job.schedule, job.tick) == (handle.id, "ping", None)
    assert not app.schedules.resume("ping").paused
    app.schedules.remove("ping")
    app.clock.advance(hours=1)
    assert ran(app) == []


def test_run_answers_with_the_job_before_it_where_runs_may_not_overlap(app: App) -> None:
    @app.task
    def ping() -> None: ...

    app.schedules.add("ping", ping.job(), every=60, overlap=False)
    first = app.schedules.run("ping")
    second = app.schedules.run("ping")
    assert (second.id, second.existing) == (first.id, True)
    ran(app)
    assert app.schedules.run("ping").id != first.id


def test_what_is_not_there_or_there_already_is_reported(app: App) -> None:
    @app.task
    def ping() -> None: ...

    of = app.schedules
    for verb in (of.get, of.pause, of.resume, of.run, of.remove):
        with pytest.raises(ScheduleNotFound, match="no schedule 'nobody'"):
            verb("nobody")
    with pytest.raises(ScheduleNotFound):
        app.schedules.set("nobody", every=60)
    app.schedules.add("ping", ping.job(), every=60)
    verbs = (of.get, of.pause, of.resume, of.run, of.remove, lambda name: of.set(name, every=30), of.reset)
    for verb in verbs:
        with pytest.raises(ScheduleNotFound, match=r"no schedule 'pin'; did you mean 'ping'\? There are ping") as no:
            verb("pin")
        assert no.value.name == "pin"
    with pytest.raises(InvalidOption, match="there is a schedule 'ping' already; change it with set"):
        app.schedules.add("ping", ping.job(), every=60)
    with pytest.raises(InvalidOption, match="nothing to change"):
        app.schedules.set("ping")
    with pytest.raises(InvalidOption, match="no code declares 'ping'"):
        app.schedules.reset("ping")


async def test_every_verb_has_an_asynchronous_form(app: App) -> None:
    @app.task
    async def ping() -> None: ...

    await app.schedules.aadd("ping", ping.job(), every=60)
    await app.schedules.aset("ping", every=30)
    await app.schedules.apause("ping")
    await app.schedules.aresume("ping")
    assert (await app.schedules.arun("ping")).id
    assert (await app.schedules.aget("ping")).in_words == "Every 30s"
    await app.schedules.aremove("ping")
    assert await app.schedules.alist() == []
    with pytest.raises(UseAsync, match=r"await alist\(\)"):
        app.schedules.list()
    await app.aclose()


def test_why_and_the_job_itself_say_which_schedule_and_tick_it_comes_from(app: App) -> None:
    @app.task
    def report() -> None: ...

    app.schedules.add("daily", report.job(), cron="0 9 * * *", tz="Europe/Berlin", jitter="1h")
    app.clock.set(NINE)
    run_all(app, queues=["nothing"])
    (job,) = app.jobs.list().items
    reason = app.jobs.why(job.id).reasons[-1]
    assert reason.code == "schedule"
    assert reason.text == (
        "Schedule daily enqueued it for 08:00:00 UTC (0s ago); its next run is at 2026-03-03 08:00:00 UTC (in 1d)."
    )
