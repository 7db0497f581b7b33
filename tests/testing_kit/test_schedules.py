"""Schedules and chains under test: a moved clock fires what has come, and links run one after the other."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.seed import nothing
from windlass import PREVIOUS, App, Context, Duration, InvalidOption, InvalidTime, Task, chain, current_job
from windlass.testing import ManualClock, arun_all, run_all

MIDNIGHT = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def app() -> Iterator[App]:
    made = App.testing(ManualClock(MIDNIGHT))
    yield made
    made.close()


def test_a_handler_knows_its_schedule_and_its_tick(app: App) -> None:
    @app.schedule("0 9 * * *", tz="Asia/Tokyo", name="daily")
    @app.task
    def report(ctx: Context) -> list[str | None]:
        tick = current_job().tick
        return [ctx.job.schedule, None if tick is None else tick.isoformat()]

    assert run_all(app).jobs == ()
    (job,) = run_all(app, until=DAY).jobs
    assert job.result == ["daily", "2030-01-02T00:00:00+00:00"]
    app.schedules.run("daily")
    assert run_all(app).jobs[0].result == ["daily", None]


def test_time_that_passes_stops_at_every_tick(app: App) -> None:
    seen = []

    @app.schedule(every="6h")
    @app.task
    def quarterly() -> None:
        seen.append(app.clock.now - MIDNIGHT)

    done = run_all(app, until=DAY)
    assert len(done.completed) == len(seen) == 4
    assert seen == [timedelta(hours=hours) for hours in (6, 12, 18, 24)]
    assert app.clock.now == MIDNIGHT + DAY
    assert run_all(app, until=MIDNIGHT + DAY).attempts == 0
    run_all(app, until=MIDNIGHT + DAY + timedelta(hours=6))
    assert len(seen) == 5


def test_time_that_passes_stops_at_delays_and_retries_too_and_goes_no_further(app: App) -> None:
    seen = []

    @app.task(max_attempts=3)
    def twice() -> None:
        seen.append(app.clock.now - MIDNIGHT)
        if len(seen) == 1:
            raise LookupError

    twice.using(delay=600).enqueue()
    twice.using(delay=timedelta(days=2)).enqueue()
    done = run_all(app, until=DAY)
    assert done.attempts == len(seen) == 2
    assert seen[0] == timedelta(minutes=10) < seen[1] < DAY
    assert app.clock.now == MIDNIGHT + DAY


def test_a_jump_fires_what_catch_up_says(app: App) -> None:
    task = app.task(type="t")(nothing)
    app.schedule("one", task.job(), every="1h")
    app.schedule("all", task.job(), every="1h", catch_up="all")
    app.schedule("none", task.job(), every="1h", catch_up="none")
    assert len(app.schedules.list()) == 3
    app.clock.advance(hours=5.5)
    names = [job.schedule for job in run_all(app).jobs]
    assert {name: names.count(name) for name in ("one", "all", "none")} == {"one": 1, "all": 5, "none": 0}
    assert (app.schedules.get("one").missed, app.schedules.get("none").missed) == (4, 5)


async def test_a_chain_runs_to_its_end_and_each_link_knows_its_parents(app: App) -> None:
    @app.task
    async def fetch(number: int) -> int:
        return number * 2

    @app.task
    def store(ctx: Context, number: int, *, bucket: str) -> str:
        assert ctx.job.parent is not None
        assert ctx.job.flow == ctx.job.parent
        assert ctx.job.parents == (ctx.job.parent,)
        assert ctx.enqueue(fetch.job(1)).job().parents == ()
        return f"{number} in {bucket}"

    handle = await chain(fetch.job(21), store.using(delay=60).job(PREVIOUS, bucket="x")).aenqueue()
    await arun_all(app)
    assert (await app.jobs.aget(handle.id)).status == "scheduled"
    await arun_all(app, until=timedelta(minutes=1))
    assert await handle.aresult() == "42 in x"
    await app.aclose()


def test_what_is_no_moment_is_refused(app: App) -> None:
    with pytest.raises(InvalidTime, match="until: has no time zone"):
        run_all(app, until=datetime(2031, 1, 1))
    with pytest.raises(InvalidTime, match="until"):
        run_all(app, until=-DAY)
    with pytest.raises(InvalidOption, match="until: cannot be given together with advance"):
        run_all(app, until=DAY, advance=True)


@pytest.mark.parametrize("length", ["1d", 86_400, DAY])
def test_time_passes_for_any_spelling_of_a_duration(app: App, length: Duration) -> None:
    app.schedule("hourly", _nothing(app).job(), cron="0 * * * *", catch_up="all")
    assert len(run_all(app, until=length).jobs) == 24


def _nothing(app: App) -> Task[[], None, None]:
    @app.task
    def nothing() -> None: ...

    return nothing
