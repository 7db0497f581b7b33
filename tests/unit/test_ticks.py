"""Ticks: what is due, what was missed, and the one job that each has."""

import uuid
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.ids import check_id, new_id
from windlass.core.moments import DAY, SECOND, Micros, to_micros
from windlass.core.schedules.cron import parse_cron
from windlass.core.schedules.ticks import LATE, MAX_AT_ONCE, CatchUp, Timetable, due, jittered, tick_id

MINUTE = 60 * SECOND
NINE = Timetable(cron=parse_cron("0 9 * * *"), zone="Europe/Berlin")
MINUTELY = Timetable(every=MINUTE, anchor=0)


def at(text: str) -> Micros:
    return to_micros(datetime.fromisoformat(text))


def test_nothing_is_due_before_its_time() -> None:
    tick = at("2025-06-02T07:00+00:00")
    assert due(NINE, tick, tick - 1, CatchUp.ONE) == due(NINE, tick, tick - DAY, CatchUp.ALL)
    assert due(NINE, tick, tick - 1, CatchUp.ONE).next == tick


def test_a_tick_that_has_come_runs_and_the_next_one_is_the_day_after() -> None:
    tick = at("2025-06-02T07:00+00:00")
    for catch_up in CatchUp:
        found = due(NINE, tick, tick + SECOND, catch_up)
        assert (found.ticks, found.next, found.missed) == ((tick,), tick + DAY, 0)


def test_after_an_outage_the_last_missed_tick_runs_for_all_of_them() -> None:
    first, now = at("2025-06-02T07:00+00:00"), at("2025-06-05T12:00+00:00")
    found = due(NINE, first, now, CatchUp.ONE)
    assert found.ticks == (first + 3 * DAY,)
    assert found.next == first + 4 * DAY
    assert found.missed == 3


def test_after_an_outage_all_or_none_of_them_run_if_that_is_wanted() -> None:
    first, now = at("2025-06-02T07:00+00:00"), at("2025-06-05T12:00+00:00")
    assert due(NINE, first, now, CatchUp.ALL).ticks == tuple(first + n * DAY for n in range(4))
    none = due(NINE, first, now, CatchUp.NONE)
    assert (none.ticks, none.next, none.missed) == ((), first + 4 * DAY, 4)


def test_what_is_only_a_little_late_is_not_missed() -> None:
    table = Timetable(every=SECOND)
    found = due(table, 100 * SECOND, 103 * SECOND, CatchUp.NONE)
    assert found.ticks == (100 * SECOND, 101 * SECOND, 102 * SECOND, 103 * SECOND)
    assert found.next == 104 * SECOND


def test_a_tick_of_now_runs_for_those_that_were_missed_too() -> None:
    found = due(MINUTELY, 60 * MINUTE, 70 * MINUTE + SECOND, CatchUp.ONE)
    assert (found.ticks, found.next) == ((70 * MINUTE,), 71 * MINUTE)


def test_very_many_missed_ticks_are_made_up_for_in_portions() -> None:
    table, now = Timetable(every=SECOND), 30 * DAY
    found = due(table, 0, now, CatchUp.ALL)
    assert found.ticks == tuple(n * SECOND for n in range(MAX_AT_ONCE))
    assert found.next == MAX_AT_ONCE * SECOND
    assert due(table, 0, now, CatchUp.ONE).next == now + SECOND


def test_intervals_keep_to_their_anchor() -> None:
    table = Timetable(every=7 * SECOND, anchor=3 * SECOND)
    assert [*table.between(0, 30 * SECOND)] == [n * SECOND for n in (3, 10, 17, 24)]
    assert table.next(-100) == 3 * SECOND


@given(
    st.sampled_from(["* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 0 1 * *", "*/20 * * * * *"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Chatham"]),
    st.integers(1_700_000_000, 1_800_000_000),
    st.integers(0, 40 * 86_400),
)
def test_the_last_tick_is_the_last_of_those_before(text: str, zone: str, now: int, back: int) -> None:
    table = Timetable(cron=parse_cron(text), zone=zone)
    upto, earliest = now * SECOND, (now - back) * SECOND
    last = table.last(upto, earliest)
    if last is None:
        assert (first := table.next(earliest - 1)) is None or first > upto
    else:
        assert earliest <= last <= upto
        assert (following := table.next(last)) is None or following > upto


@given(st.integers(1, 10_000), st.integers(0, 10**6), st.integers(0, 10**5), st.sampled_from(CatchUp))
def test_however_often_and_wherever_it_is_fired_no_tick_runs_twice(
    every: int, start: int, wait: int, catch_up: CatchUp
) -> None:
    table = Timetable(every=every * SECOND, anchor=start * SECOND)
    pending, now, ran = start * SECOND, start * SECOND, list[Micros]()
    for step in (wait, 1, LATE // SECOND, wait // 3 + 1):
        now += step * SECOND
        found = due(table, pending, now, catch_up)
        ran += found.ticks
        assert found.next is not None
        assert found.next > pending or not found.ticks
        pending = found.next
    assert ran == sorted(set(ran))
    assert all(tick <= now for tick in ran)


def test_a_ticks_job_is_the_same_from_every_process_and_ranks_by_its_time() -> None:
    tick = at("2025-06-02T07:00+00:00")
    id_ = tick_id("daily", tick)
    assert id_ == tick_id("daily", tick) == check_id(id_)
    assert len({id_, tick_id("daily", tick + 1), tick_id("weekly", tick)}) == 3
    assert uuid.UUID(id_).version == 7
    assert uuid.UUID(id_).variant == uuid.RFC_4122
    assert tick_id("a", tick) < tick_id("a", tick + SECOND) < new_id()


def test_jitter_is_bounded_and_the_same_in_every_process() -> None:
    moments = [jittered("daily", n * DAY, 60 * SECOND) - n * DAY for n in range(200)]
    assert all(0 <= moment < 60 * SECOND for moment in moments)
    assert len(set(moments)) > 150
    assert jittered("daily", DAY, 0) == DAY
