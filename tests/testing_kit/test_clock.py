"""The clock that tests move."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from windlass import App, InvalidTime
from windlass.testing import ManualClock, run_all

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_it_begins_now_and_does_not_move() -> None:
    before = datetime.now(UTC)
    clock = ManualClock()
    assert before - timedelta(milliseconds=1) <= clock.now <= datetime.now(UTC)
    assert clock.now == clock.now


def test_it_can_begin_at_a_given_moment() -> None:
    clock = ManualClock(NOON)
    assert clock.now == NOON
    assert repr(clock) == "ManualClock(2030-01-01T12:00:00+00:00)"


@pytest.mark.parametrize(
    ("how", "passed"),
    [
        ({"seconds": 1.5}, timedelta(seconds=1.5)),
        ({"seconds": timedelta(weeks=1)}, timedelta(weeks=1)),
        ({"seconds": "5m"}, timedelta(minutes=5)),
        ({"minutes": 2}, timedelta(minutes=2)),
        ({"hours": 3, "minutes": 1}, timedelta(hours=3, minutes=1)),
        ({"days": 4}, timedelta(days=4)),
    ],
)
def test_it_is_advanced_in_any_unit(how: dict[str, Any], passed: timedelta) -> None:
    clock = ManualClock(NOON)
    assert clock.advance(**how) == clock.now == NOON + passed


def test_it_is_set_forwards_and_back_and_the_boot_clock_never_goes_back() -> None:
    clock = ManualClock(NOON)
    begun = clock.since_boot()
    assert clock.set(NOON + timedelta(seconds=5)) == NOON + timedelta(seconds=5)
    assert clock.set(NOON) == NOON
    assert clock.since_boot() == begun + 5_000_000


@pytest.mark.parametrize("wrong", [{"seconds": -1}, {"hours": -1}, {"seconds": "soon"}])
def test_what_is_no_time_is_refused(wrong: dict[str, Any]) -> None:
    clock = ManualClock(NOON)
    with pytest.raises(InvalidTime, match=next(iter(wrong))):
        clock.advance(**wrong)
    assert clock.now == NOON


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(InvalidTime, match="start: has no time zone"):
        ManualClock(datetime(2030, 1, 1))
    with pytest.raises(InvalidTime, match="moment: has no time zone"):
        ManualClock().set(datetime(2030, 1, 1))


def test_the_jobs_of_an_app_live_in_its_time() -> None:
    app = App.testing(ManualClock(NOON))

    @app.task
    def work() -> None: ...

    job = work.using(run_at=NOON + timedelta(hours=1)).enqueue()
    assert app.jobs.get(job.id).created_at == NOON
    app.clock.set(NOON + timedelta(hours=1))
    (done,) = run_all(app).completed
    assert (done.started_at, done.finished_at) == (app.clock.now, app.clock.now)
    app.close()
