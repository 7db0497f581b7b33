"""app.stats.recent, oldest and timeline, app.jobs.failures: how it goes, in seconds."""

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.client.labour import Labour
from tests.support.addresses import on_sql
from windlass import App, Dead, InvalidOption, WindlassError
from windlass.core.moments import SECOND
from windlass.core.stats.meter import Meter, histogram
from windlass.core.stats.recent_stats import by_queue, by_type, recent_stats
from windlass.core.stats.samples import MINUTE, start_of


async def test_what_was_recorded_is_read_as_rates_of_queues_and_types(app: App) -> None:
    store = await app._ready()
    slow, fast = histogram([4 * SECOND]), histogram([SECOND // 100])
    await store.stats.record(
        [
            Meter(queue="mail", type="a", completed=20, wait=fast, run=slow),
            Meter(
                queue="mail", type="b", completed=10, failed=1, dead=1, crashed=1, cancelled=5, wait=slow, run=fast
            ),
            Meter(queue="other", type="a", completed=1),
        ]
    )
    recent = await app.stats.arecent(timedelta(minutes=5))
    queues, types = by_queue(recent), by_type(recent)
    assert {name: (each.completed, each.failures) for name, each in queues.items()} == {
        "mail": (30, 3),
        "other": (1, 0),
    }
    assert {name: each.completed for name, each in types.items()} == {"a": 21, "b": 10}
    assert types["a"].run.p50 == pytest.approx(4, rel=1 / 16)
    assert types["b"].wait.p99 == pytest.approx(4, rel=1 / 16)
    assert queues["other"].run.p50 is None
    assert recent_stats(recent).completed == 31
    assert 31 / 31 <= recent_stats(recent).per_second <= 31 / 20


@pytest.mark.parametrize("length", [0, 3601, -1, float("nan"), "2h", "soon"])
def test_a_length_that_is_not_kept_is_refused(app: App, length: Any) -> None:
    with pytest.raises(WindlassError, match="length"):
        app.stats.recent(length)


def test_the_oldest_is_given_in_seconds_for_queues_that_have_any(app: App) -> None:
    @app.task
    def waits() -> None: ...

    assert app.stats.oldest() == {}
    waits.using(queue="mail").enqueue()
    waits.using(queue="later", delay=60).enqueue()
    oldest = app.stats.oldest()
    assert oldest.keys() == {"mail"}
    assert 0 <= oldest["mail"] < 60


def test_failures_are_what_failed_last_first(app: App, labour: Labour) -> None:
    @app.task(type="t", max_attempts=5)
    def fails() -> None: ...

    first, second = fails.enqueue(), fails.enqueue()
    labour.fail(Dead("hopeless"))
    labour.fail(ValueError("not yet"))
    assert [(job.id, job.status) for job in app.jobs.failures()] == [(second.id, "failed"), (first.id, "dead")]
    assert [job.id for job in app.jobs.failures(1)] == [second.id]


@pytest.mark.parametrize("limit", [0, 1001, True, "1"])
def test_a_number_of_failures_that_cannot_be_is_refused(app: App, limit: Any) -> None:
    with pytest.raises(InvalidOption, match="limit: must be a whole number from 1 to 1000"):
        app.jobs.failures(limit)


def test_a_timeline_without_samples_is_all_gaps(app: App) -> None:
    timeline = app.stats.timeline(timedelta(minutes=10))
    assert (timeline.seconds, timeline.by, timeline.series, timeline.all.whole) == (60, "queue", {}, None)
    assert timeline.all.points == (None,) * 10
    assert (timeline.until - timeline.since) == timedelta(minutes=10)


@on_sql
async def test_a_timeline_is_what_the_coordinator_sampled(app: App) -> None:
    store = await app._ready()
    now = start_of((await store.stats.recent(1)).now, MINUTE) - 5 * MINUTE
    made = [
        Meter(queue="", type="", interval_start=now),
        Meter(queue="mail", type="a", interval_start=now, completed=30, dead=2),
    ]
    await store.stats.write_samples(MINUTE, made, [])  # type: ignore[attr-defined]
    timeline = await app.stats.atimeline(600)
    points = [point for point in timeline.series["mail"].points if point is not None]
    assert [(point.completed, point.failures, point.per_second) for point in points] == [(30, 2, 0.5)]
    assert (await app.stats.atimeline(600, by="type")).series.keys() == {"a"}
    assert (await app.stats.atimeline(600, queue="other")).series == {}
    (hour,) = (await app.stats.atimeline(3600, points=1)).series["mail"].points
    assert hour is not None
    assert hour.completed == 30
    assert len((await app.stats.atimeline(3 * 3600, step="hour")).all.points) == 3


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"length": 0}, "length: must be up to 400 days, and more than none"),
        ({"length": 401 * 86_400}, "length: must be up to 400 days, and more than none"),
        ({"length": 8 * 86_400, "step": "minute"}, "length: must be up to 7 days by the minute, and more than none"),
        ({"length": "soon"}, "length: 'soon' is not a duration"),
        ({"by": "tenant"}, "by: 'tenant' is not one of queue, type"),
        ({"step": "day"}, "step: 'day' is not one of minute, hour"),
        ({"points": 0}, "points: must be a whole number from 1 to 10080, not 0"),
        ({"points": True}, "points: must be a whole number from 1 to 10080, not True"),
        ({"queue": ""}, "queue: '' is not 1 to 128"),
        ({"type": 5}, "type: must be a string, not int"),
    ],
)
def test_a_timeline_that_cannot_be_drawn_is_refused(app: App, wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(WindlassError, match=re.escape(problem)):
        app.stats.timeline(**wrong)
