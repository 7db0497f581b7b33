"""Samples: which minutes and hours are made, and what becomes of their parts."""

from hypothesis import given
from hypothesis import strategies as some

from windlass.core.moments import SECOND
from windlass.core.stats.meter import INTERVAL, METER_RETENTION, Meter, Recent, histogram
from windlass.core.stats.samples import (
    HOUR,
    LAG,
    MAX_PAIRS,
    MAX_PRUNED,
    MAX_QUEUES,
    MINUTE,
    Depth,
    Rollup,
    closed,
    depths,
    hours_due,
    merged,
    minutes_due,
    pruned_until,
    start_of,
)

NOW = start_of(1_700_000_000 * SECOND, HOUR) + 30 * MINUTE + LAG
NAMES = some.sampled_from(["a", "b", "c"])
METERS = some.builds(
    Meter,
    queue=NAMES,
    type=NAMES,
    interval_start=some.integers(0, 17).map(lambda number: NOW + number * INTERVAL),
    completed=some.integers(1, 5),
    dead=some.integers(0, 2),
    run=some.lists(some.integers(0, 99), max_size=3).map(histogram),
)


def rolled(minutes: list[int], parts: list[Meter], there: list[Meter]) -> list[Meter]:
    made: list[Meter] = []
    for minute in minutes:
        roll = Rollup(minute)
        for slot in range(minute, minute + MINUTE, INTERVAL):
            roll.add(each for each in parts if slot <= each.interval_start < slot + INTERVAL)
        made += roll.grown([each for each in there if each.interval_start == minute])
    return made


def meter(queue: str = "q", type_: str = "t", *, slot: int = NOW, completed: int = 1) -> Meter:
    return Meter(queue=queue, type=type_, interval_start=slot, completed=completed)


def test_a_minute_can_be_made_when_what_was_late_is_there() -> None:
    assert closed(NOW, MINUTE) == NOW - LAG - MINUTE
    assert closed(NOW - 1, MINUTE) == NOW - LAG - 2 * MINUTE
    assert closed(NOW, HOUR) == NOW - LAG - 90 * MINUTE


def test_the_newest_minute_is_always_made_again() -> None:
    newest = closed(NOW, MINUTE)
    assert minutes_due(NOW, newest) == minutes_due(NOW, newest - MINUTE) == [newest]


def test_missed_minutes_are_made_oldest_first_but_only_with_all_their_slots() -> None:
    newest = closed(NOW, MINUTE)
    assert minutes_due(NOW, newest - 5 * MINUTE) == [newest - back * MINUTE for back in (4, 3, 2, 1, 0)]
    oldest = minutes_due(NOW, 0)[0]
    assert NOW - METER_RETENTION <= oldest < NOW - METER_RETENTION + MINUTE


def test_an_hour_is_made_with_its_last_minute_or_if_it_was_missed() -> None:
    hour = start_of(NOW, HOUR)
    later = hour + HOUR + LAG
    assert hours_due(later, [hour + 59 * MINUTE], None) == [hour]
    assert hours_due(later, [hour + 58 * MINUTE], None) == []
    assert hours_due(later, [hour + 58 * MINUTE], hour - 5 * HOUR + MINUTE) == [hour - 5 * HOUR]
    assert hours_due(later - 1, [], hour) == [], "it is not over"


@given(some.lists(METERS, max_size=40))
def test_what_is_rolled_up_is_the_sum_of_its_parts(parts: list[Meter]) -> None:
    minutes = sorted({start_of(each.interval_start, MINUTE) for each in parts})
    made = rolled(minutes, parts, [])
    for minute in minutes:
        within = Recent(0, tuple(each for each in parts if start_of(each.interval_start, MINUTE) == minute)).total()
        assert Recent(0, tuple(each for each in made if each.interval_start == minute)).total() == within
    assert {each.interval_start for each in made if (each.queue, each.type) == ("", "")} == set(minutes)


@given(some.lists(METERS, max_size=40), some.lists(METERS, max_size=10))
def test_making_it_again_writes_only_what_has_grown(parts: list[Meter], late: list[Meter]) -> None:
    minutes = sorted({start_of(each.interval_start, MINUTE) for each in [*parts, *late]})
    made = rolled(minutes, parts, [])
    assert rolled(minutes, parts, made) == []
    assert rolled(minutes, [], made) == [], "parts that are gone take nothing with them"
    again = {(each.interval_start, each.queue, each.type): each for each in rolled(minutes, [*parts, *late], made)}
    whole = {(each.interval_start, each.queue, each.type): each for each in made} | again
    assert Recent(0, tuple(whole.values())).total() == Recent(0, (*parts, *late)).total()


def test_a_minute_that_nothing_ended_in_was_made_too() -> None:
    (mark,) = rolled([NOW], [], [])
    assert (mark.queue, mark.type, mark.ended) == ("", "", 0)


def test_the_busiest_keep_their_names_and_the_rest_is_that_of_its_queue() -> None:
    minute = start_of(NOW, MINUTE)
    parts = [meter(type_=f"t{number:04}", completed=number + 1) for number in range(MAX_PAIRS + 50)]
    made = rolled([minute], parts, [])
    assert len(made) == MAX_PAIRS + 2
    named = [each.type for each in made if each.type]
    assert (min(named), len(named)) == ("t0050", MAX_PAIRS)
    rest = next(each for each in made if (each.queue, each.type) == ("q", ""))
    assert rest.completed == sum(range(1, 51))


def test_a_named_tenant_keeps_its_name_when_a_minute_is_made_again() -> None:
    minute = start_of(NOW, MINUTE)
    parts = [meter(type_=f"t{number:04}", completed=5) for number in range(MAX_PAIRS + 1)]
    there = rolled([minute], parts, [])
    late = [*parts, meter(type_=f"t{MAX_PAIRS:04}", completed=1000)]
    grown = rolled([minute], late, there)
    assert [(each.queue, each.type, each.completed) for each in grown] == [("q", "", 1005)]


def test_of_very_many_queues_the_least_busy_have_no_name() -> None:
    minute = start_of(NOW, MINUTE)
    parts = [meter(f"q{number:04}", completed=number + 1) for number in range(MAX_QUEUES + 3)]
    made = rolled([minute], parts, [])
    assert (made[0].queue, made[0].type, made[0].completed) == ("", "", 1 + 2 + 3)
    assert len(made) == MAX_QUEUES + 1


def test_one_look_has_the_whole_and_each_queue_without_its_zeros() -> None:
    found = depths(7, {"b": {"pending": 2, "dead": 0}, "a": {"pending": 1, "dead": 3}}, {"b": 9})
    assert found == [
        Depth(
            queue="", interval_start=7, jobs={"pending": 3, "dead": 3}, max_jobs={"pending": 3, "dead": 3}, oldest=9
        ),
        Depth(queue="a", interval_start=7, jobs={"pending": 1, "dead": 3}, max_jobs={"pending": 1, "dead": 3}),
        Depth(queue="b", interval_start=7, jobs={"pending": 2}, max_jobs={"pending": 2}, oldest=9),
    ]


def test_of_very_many_queues_those_with_living_jobs_are_looked_at() -> None:
    counts = {f"q{number:04}": {"completed": 1000 - number, "pending": number} for number in range(MAX_QUEUES + 5)}
    found = depths(0, counts, {})
    assert [each.queue for each in found] == ["", *(f"q{number:04}" for number in range(5, MAX_QUEUES + 5))]
    assert found[0].jobs["pending"] == sum(range(MAX_QUEUES + 5))


def test_looks_are_added_up_and_the_worst_is_remembered() -> None:
    one = Depth(queue="q", interval_start=1, jobs={"pending": 5}, max_jobs={"pending": 5}, oldest=3)
    two = Depth(queue="q", interval_start=2, jobs={"pending": 1, "dead": 2}, max_jobs={"pending": 1, "dead": 2})
    both = Depth(
        queue="q",
        interval_start=0,
        observations=2,
        jobs={"dead": 2, "pending": 6},
        max_jobs={"dead": 2, "pending": 5},
        oldest=3,
    )
    assert merged(0, [one, two]) == merged(0, [two, one]) == [both]
    assert merged(0, []) == []


def test_not_too_much_is_dropped_at_once() -> None:
    before = pruned_until(NOW, MINUTE, None)
    assert pruned_until(NOW, MINUTE, before - 10 * MINUTE) == before
    assert pruned_until(NOW, MINUTE, 0) == MAX_PRUNED * MINUTE
