"""Courses: points of minutes and hours, with gaps where nothing was sampled."""

from typing import Any

import pytest

from windlass.core.moments import DAY, SECOND, to_datetime
from windlass.core.stats.meter import Meter, histogram
from windlass.core.stats.samples import HOUR, MINUTE, Depth, start_of
from windlass.core.stats.timeline import By, SampleQuery, Samples, Timeline, sample_window
from windlass.core.stats.timeline_builder import MAX_STEPS, TimelineBuilder

NOW = start_of(1_700_000_000 * SECOND, HOUR) + 30 * SECOND
SINCE = NOW - 30 * SECOND - 10 * MINUTE
WINDOW = SampleQuery(step=MINUTE, since=SINCE, until=SINCE + 10 * MINUTE)


def meter(number: int, queue: str = "", type_: str = "", completed: int = 0, **fields: object) -> Meter:
    slot = SINCE + number * MINUTE
    return Meter(queue=queue, type=type_, interval_start=slot, completed=completed, **fields)  # type: ignore[arg-type]


def depth(number: int, queue: str, pending: int, oldest: int | None = None) -> Depth:
    jobs = {"pending": pending}
    return Depth(queue=queue, interval_start=SINCE + number * MINUTE, jobs=jobs, max_jobs=jobs, oldest=oldest)


def plotted(meters: list[Meter], depths: list[Depth], width: int = MINUTE, by: By = "queue", **only: Any) -> Timeline:
    plot = TimelineBuilder(SampleQuery(step=MINUTE, since=SINCE, until=SINCE + 10 * MINUTE, **only), width, by)
    plot.add(Samples(tuple(meters), tuple(depths)))
    return plot.build()


def completed(timeline: Timeline, name: str | None = None) -> list[int | None]:
    line = timeline.all if name is None else timeline.series[name]
    return [None if point is None else point.completed for point in line.points]


@pytest.mark.parametrize(
    ("length", "step", "points", "width", "count"),
    [
        (6 * HOUR, None, None, MINUTE, 360),
        (7 * DAY, None, None, HOUR, 168),
        (7 * DAY, MINUTE, None, MINUTE, 10_080),
        (6 * HOUR, None, 60, 6 * MINUTE, 60),
        (6 * HOUR, None, 50, 8 * MINUTE, 45),
        (90 * DAY, None, 30, 72 * HOUR, 30),
        (SECOND, None, None, MINUTE, 1),
        (HOUR, HOUR, 5, HOUR, 1),
        (5 * MINUTE, None, 100, MINUTE, 5),
    ],
)
def test_a_frame_has_no_more_points_than_asked_for_and_misses_nothing(
    length: int, step: int | None, points: int | None, width: int, count: int
) -> None:
    window, found = sample_window(NOW, length, step, points)
    assert (found, (window.until - window.since) // found) == (width, count)
    assert window.until % window.step == window.since % window.step == 0
    assert window.until - window.since >= length


def test_a_frame_ends_with_the_last_minute_that_is_made_by_now() -> None:
    assert sample_window(NOW, HOUR, None, None)[0].until == start_of(NOW, MINUTE)
    assert sample_window(NOW - 20 * SECOND, HOUR, None, None)[0].until == start_of(NOW, MINUTE) - MINUTE


def test_what_was_not_sampled_is_a_gap_and_what_did_not_happen_a_zero() -> None:
    timeline = plotted([meter(0), meter(0, "q", "t", 3), meter(1), meter(9), meter(9, "p", "t", 1)], [])
    assert completed(timeline, "q") == [3, 0, *[None] * 7, 0]
    assert completed(timeline, "p") == [0, 0, *[None] * 7, 1]
    assert completed(timeline) == [3, 0, *[None] * 7, 1]
    assert (timeline.since, timeline.until, timeline.seconds) == (
        to_datetime(SINCE),
        to_datetime(SINCE + 10 * MINUTE),
        60.0,
    )


def test_nothing_sampled_is_nothing_but_gaps() -> None:
    timeline = plotted([], [])
    assert (timeline.series, timeline.all.whole, completed(timeline)) == ({}, None, [None] * 10)


def test_a_rate_is_over_the_time_that_was_sampled() -> None:
    timeline = plotted([meter(0), meter(0, "q", "t", 120), meter(1), meter(7)], [], width=5 * MINUTE)
    first, second = timeline.series["q"].points
    assert first is not None
    assert second is not None
    assert (first.per_second, second.per_second) == (1.0, 0.0), "two of five minutes, and one"
    assert timeline.series["q"].whole is not None
    assert timeline.series["q"].whole.per_second == pytest.approx(120 / 180)


def test_neighbours_are_put_together_with_their_times() -> None:
    fast, slow = histogram([SECOND] * 98), histogram([100 * SECOND] * 2)
    parts = [meter(0, "q", "t", 98, run=fast), meter(1, "q", "u", 2, run=slow, dead=1, crashed=1)]
    timeline = plotted([meter(0), meter(1), *parts], [], width=2 * MINUTE)
    point = timeline.series["q"].points[0]
    assert point is not None
    assert (point.completed, point.failures) == (100, 2)
    assert point.run.p50 == pytest.approx(1, rel=1 / 16)
    assert point.run.p99 == pytest.approx(100, rel=1 / 16)
    assert point.wait.p50 is None
    assert timeline.series["q"].whole is not None
    assert timeline.series["q"].whole.run == point.run


def test_the_depth_is_an_average_and_the_most() -> None:
    looks = [depth(0, "", 6, 2 * SECOND), depth(0, "q", 4, 2 * SECOND), depth(1, "", 2), depth(1, "q", 2)]
    timeline = plotted([meter(0), meter(1), meter(2)], [*looks, depth(2, "", 0)], width=5 * MINUTE)
    point = timeline.series["q"].points[0]
    assert point is not None
    assert (point.jobs, point.max_jobs, point.oldest) == ({"pending": 2.0}, {"pending": 4}, 2.0)
    assert timeline.all.whole is not None
    assert timeline.all.whole.jobs == {"pending": 8 / 3}


def test_a_queue_without_a_job_has_none_but_where_nothing_was_counted_that_is_not_known() -> None:
    timeline = plotted([meter(0), meter(0, "q", "t", 1), meter(1)], [depth(0, "", 0)])
    counted, unknown = timeline.series["q"].points[:2]
    assert counted is not None
    assert unknown is not None
    assert (counted.jobs, unknown.jobs) == ({}, None)


def test_types_are_not_counted() -> None:
    timeline = plotted([meter(0), meter(0, "q", "t", 1)], [depth(0, "", 3), depth(0, "q", 3)], by="type")
    point = timeline.series["t"].points[0]
    assert point is not None
    assert point.jobs is None
    assert timeline.series.keys() == {"t"}
    assert timeline.all.points[0] is not None
    assert timeline.all.points[0].jobs == {"pending": 3.0}


def test_only_one_queue_or_type_is_shown_if_it_is_asked_for() -> None:
    parts = [meter(0), *(meter(0, queue, type_, 1) for queue in "ab" for type_ in "xy"), meter(0, "", "", 5)]
    looks = [depth(0, "", 9), depth(0, "a", 4), depth(0, "b", 5)]
    timeline = plotted(parts, looks, queue="a")
    assert (completed(timeline, "a")[0], completed(timeline)[0], list(timeline.series)) == (2, 2, ["a"])
    assert timeline.all.points[0] is not None
    assert timeline.all.points[0].jobs == {"pending": 4.0}
    timeline = plotted(parts, looks, by="type", queue="a")
    assert [completed(timeline, name)[0] for name in timeline.series] == [1, 1]
    timeline = plotted(parts, looks, type="x")
    assert (completed(timeline)[0], list(timeline.series)) == (2, ["a", "b"])


def test_what_has_no_name_is_a_line_only_if_there_is_any() -> None:
    assert plotted([meter(0), meter(0, "q", "t", 1)], [depth(0, "", 1)]).series.keys() == {"q"}
    assert plotted([meter(0, "", "", 4), meter(0, "q", "", 2)], [], by="type").series.keys() == {""}


def test_pieces_are_bounded_and_together_the_window() -> None:
    until = SINCE + (3 * MAX_STEPS + 7) * MINUTE
    pieces = list(TimelineBuilder(SampleQuery(step=MINUTE, since=SINCE, until=until), MINUTE, "queue").pieces())
    assert [each.since for each in pieces] == [SINCE, *(each.until for each in pieces[:-1])]
    assert [(each.until - each.since) // MINUTE for each in pieces] == [MAX_STEPS] * 3 + [7]
    assert pieces[-1].until == until


@pytest.mark.parametrize("cut", range(1, 10))
def test_where_a_piece_ends_makes_no_difference(cut: int) -> None:
    meters = [each for n in range(10) for each in (meter(n), meter(n, "q", "t", n, run=histogram([n * SECOND])))]
    depths = [each for n in range(10) for each in (depth(n, "", n + 1, n), depth(n, "q", n, n))]
    whole = plotted(meters, depths, width=4 * MINUTE)
    plot = TimelineBuilder(SampleQuery(step=MINUTE, since=SINCE, until=SINCE + 10 * MINUTE), 4 * MINUTE, "queue")
    plot.add(Samples(tuple(meters[: 2 * cut]), tuple(depths[: 2 * cut])))
    plot.add(Samples(tuple(meters[2 * cut :]), tuple(depths[2 * cut :])))
    assert plot.build() == whole


def test_the_sum_alone_is_the_same_as_beside_series() -> None:
    meters = [meter(1, "a", "t", 2), meter(1, "b", "t", 3), meter(2, "a", "u", 4), meter(2)]
    depths = [depth(1, "", 5), depth(1, "a", 4, oldest=9), depth(2, "", 7)]
    wanted: list[dict[str, Any]] = [{}, {"queue": "a"}, {"type": "t"}]
    for only in wanted:
        alone, beside = plotted(meters, depths, by="all", **only), plotted(meters, depths, **only)
        assert alone.series == {}
        assert alone.all == beside.all
        assert completed(alone)[1:3] == completed(beside)[1:3]
