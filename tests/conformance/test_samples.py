"""sample, timeline: minutes for days and hours for months, made once however often and by however many."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.support.clock import START, ManualClock
from tests.support.seed import enqueue, put
from windlass.core.moments import DAY, SECOND
from windlass.core.stats.meter import INTERVAL, METER_RETENTION, Histogram, Meter, histogram
from windlass.core.stats.samples import (
    HOUR,
    LAG,
    MAX_MINUTES,
    MAX_PAIRS,
    MAX_QUEUES,
    MINUTE,
    SAMPLE_RETENTION,
    Depth,
    total,
)
from windlass.core.stats.timeline import By, SampleQuery, Samples, Times
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import JobFilter


def meter(queue: str = "q", type_: str = "t", **fields: object) -> Meter:
    given = {"completed": 1, "wait": histogram([100]), "run": histogram([7])}
    return Meter(queue=queue, type=type_, **{**given, **fields})  # type: ignore[arg-type]


async def read(store: Store, step: int = MINUTE, **only: Any) -> Samples:
    return await store.stats.samples(SampleQuery(step=step, since=0, until=START + 1000 * DAY, **only))


async def made(store: Store, step: int = MINUTE) -> dict[int, int]:
    """Minutes or hours since the beginning that were made, and how many attempts were completed in each."""
    found: dict[int, int] = {}
    for each in (await read(store, step)).meters:
        number = (each.interval_start - START) // step
        found[number] = found.get(number, 0) + each.completed
    return found


async def busy(store: Store, step: int = MINUTE) -> dict[int, int]:
    return {number: completed for number, completed in (await made(store, step)).items() if completed}


async def make_up(store: Store) -> int:
    """Sample until there is no more: how often it took."""
    for turn in range(1, 500):
        if (await store.stats.sample()).next_in:
            return turn
    raise AssertionError("there is always more to make up")


async def live(store: Store, clock: ManualClock, minutes: int) -> None:
    """A coordinator is there for so many minutes, and one job is completed in each."""
    for _ in range(minutes):
        await store.stats.record([meter()])
        clock.advance(MINUTE)
        await store.stats.sample()


async def test_a_minute_is_made_of_its_slots_shortly_after_it_is_over(store: Store, clock: ManualClock) -> None:
    for failed in range(6):
        await store.stats.record([meter(failed=failed), meter(type_="other")])
        clock.advance(INTERVAL)
    clock.advance(LAG - 1)
    await make_up(store)
    assert 0 not in await made(store), "another runner may still be writing what ended in it"
    clock.advance(1)
    await make_up(store)
    found = {each.type: each for each in (await read(store)).meters if each.interval_start == START}
    assert found.keys() == {"", "other", "t"}
    expected = meter(completed=6, failed=15, interval_start=START, wait=histogram([100] * 6), run=histogram([7] * 6))
    assert found["t"] == expected
    assert found[""].ended == 0, "what has no name: it is there to tell that the minute was made"


async def test_a_coordinator_learns_when_the_next_minute_can_be_made(store: Store, clock: ManualClock) -> None:
    await make_up(store)
    clock.advance(25 * SECOND)
    assert (await store.stats.sample()).next_in == 45 * SECOND
    clock.advance(45 * SECOND)
    assert (await store.stats.sample()).next_in == MINUTE
    assert (START + 70 * SECOND, max(await made(store))) == (clock.wall(), 0)


async def test_sampling_again_and_two_at_once_make_the_same(store: Store, clock: ManualClock) -> None:
    await put(store, Status.PENDING, queue="q")
    await live(store, clock, 130)
    before = [await read(store, step) for step in (MINUTE, HOUR)]
    for _ in range(3):
        await asyncio.gather(*(store.stats.sample() for _ in range(4)))
    assert [await read(store, step) for step in (MINUTE, HOUR)] == before
    assert set((await busy(store, HOUR)).values()) == {60}


async def test_what_was_missed_is_made_up_as_long_as_its_slots_are_kept(store: Store, clock: ManualClock) -> None:
    await make_up(store)
    for _ in range(200):
        await store.stats.record([meter()])
        clock.advance(MINUTE)
    clock.advance(LAG)
    await store.operator.prune(10)
    turns = await make_up(store)
    assert turns == -(-59 // MAX_MINUTES), "a bounded number at a time"
    found = {number: completed for number, completed in (await made(store)).items() if number >= 0}
    assert found == dict.fromkeys(range(141, 200), 1), "and what is older is a gap, not a zero"


async def test_what_is_written_down_late_is_added_to_a_minute_that_was_made(store: Store, clock: ManualClock) -> None:
    await make_up(store)
    await store.stats.record([meter()])
    clock.advance(MINUTE + LAG)
    await make_up(store)
    assert await busy(store) == {0: 1}
    clock.jump_wall(-INTERVAL - LAG)
    await store.stats.record([meter(), meter(type_="other")])
    clock.advance(INTERVAL + LAG)
    await make_up(store)
    assert await busy(store) == {0: 3}


async def test_a_clock_that_is_set_back_doubles_and_loses_nothing(store: Store, clock: ManualClock) -> None:
    await live(store, clock, 30)
    clock.jump_wall(-20 * MINUTE)
    await live(store, clock, 60)
    clock.advance(MINUTE)
    await make_up(store)
    found = await busy(store)
    assert found == {number: 2 if 10 <= number < 30 else 1 for number in range(70)}
    clock.advance(HOUR)
    await make_up(store)
    assert (await busy(store, HOUR))[0] == 80


async def test_a_clock_that_was_a_day_ahead_takes_nothing_away(store: Store, clock: ManualClock) -> None:
    await live(store, clock, 5)
    clock.advance(LAG)
    await make_up(store)
    clock.jump_wall(DAY)
    await store.operator.prune(10)
    await make_up(store)
    clock.jump_wall(-DAY)
    clock.advance(MINUTE)
    await make_up(store)
    assert await busy(store) == dict.fromkeys(range(5), 1), "their slots are gone, but they were made before"


async def test_hours_are_made_of_minutes_with_their_times(store: Store, clock: ManualClock) -> None:
    for number in range(125):
        await store.stats.record([meter(wait=histogram([number]), run=histogram([5]), dead=number % 2)])
        clock.advance(MINUTE)
        await store.stats.sample()
    first, second = [each for each in (await read(store, HOUR)).meters if each.type and each.interval_start >= START]
    assert first == meter(
        interval_start=START, completed=60, dead=30, wait=histogram(range(60)), run=histogram([5] * 60)
    )
    assert (second.interval_start, second.wait) == (START + HOUR, histogram(range(60, 120)))


async def test_hours_are_made_up_as_long_as_there_are_minutes(store: Store, clock: ManualClock) -> None:
    await live(store, clock, 59)
    clock.advance(3 * DAY)
    assert await busy(store, HOUR) == {}
    await make_up(store)
    assert await busy(store, HOUR) == {0: 58}, "the last minute was over, but not made, and its slots are gone"
    clock.advance(2 * MINUTE)
    await make_up(store)
    hours = sorted(await made(store, HOUR))
    assert hours == [-1, 0, 72], "of others there are only those in which a worker was alive, or right after"


async def test_jobs_are_counted_once_in_a_minute(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 3, queue="mail")
    await put(store, Status.DEAD, queue="other")
    clock.advance(5 * SECOND)
    await store.stats.sample()
    await enqueue(store, 4, queue="mail")
    clock.advance(50 * SECOND)
    await store.stats.sample()
    alike = {"observations": 1, "interval_start": START}
    pending, dead = {"pending": 3}, {"dead": 1}
    assert (await read(store)).depths == (
        Depth(queue="", jobs=pending | dead, max_jobs=pending | dead, oldest=5 * SECOND, **alike),
        Depth(queue="mail", jobs=pending, max_jobs=pending, oldest=5 * SECOND, **alike),
        Depth(queue="other", jobs=dead, max_jobs=dead, oldest=None, **alike),
    )
    clock.advance(5 * SECOND)
    await store.stats.sample()
    assert [each.jobs for each in (await read(store, queue="mail")).depths if each.queue] == [
        {"pending": 3},
        {"pending": 7},
    ]


async def test_of_an_hour_the_sum_and_the_most_are_kept(store: Store, clock: ManualClock) -> None:
    for number in range(61):
        if number in (10, 20):
            await enqueue(store, 1, queue="mail")
        if number == 40:
            waiting = await store.operator.select(JobFilter(status=(Status.PENDING,)), 10, None)
            await store.operator.cancel(waiting, "")
        await store.stats.sample()
        clock.advance(MINUTE)
    await store.stats.sample()
    whole, mail = [each for each in (await read(store, HOUR)).depths if each.interval_start == START]
    assert (whole.queue, whole.observations, whole.max_jobs) == ("", 60, {"cancelled": 2, "pending": 2})
    assert mail.jobs == {"cancelled": 40, "pending": 10 * 1 + 20 * 2}
    assert mail.oldest == 29 * MINUTE


async def test_where_there_are_very_many_the_busiest_have_names_and_the_sum_is_the_whole(
    store: Store, clock: ManualClock
) -> None:
    many = MAX_QUEUES + 20
    given = [meter(f"q{queue:03}", f"t{type_}", completed=queue + 1) for queue in range(many) for type_ in range(3)]
    await store.stats.record(given)
    for length in (MINUTE + LAG, HOUR):
        clock.advance(length)
        await make_up(store)
    whole = sum(each.completed for each in given)
    for step in (MINUTE, HOUR):
        found = [each for each in (await read(store, step)).meters if each.interval_start == START]
        assert sum(each.completed for each in found) == whole
        assert len(found) <= MAX_PAIRS + MAX_QUEUES + 1
        assert len([each for each in found if each.type]) == MAX_PAIRS
        assert {each.queue for each in found if each.queue} == {f"q{queue:03}" for queue in range(20, many)}


@pytest.mark.parametrize("step", SAMPLE_RETENTION)
async def test_minutes_and_hours_are_pruned_when_their_time_is_over(
    store: Store, clock: ManualClock, step: int
) -> None:
    await enqueue(store, 1)
    await live(store, clock, 125)
    before = await made(store, step)
    clock.advance(SAMPLE_RETENTION[step] - 125 * MINUTE)
    await store.operator.prune(10)
    assert set(await made(store, step)) == {number for number in before if number >= 0}
    clock.advance(HOUR)
    for _ in range(3):
        await store.operator.prune(10)
    first = HOUR // step
    assert set(await made(store, step)) == {number for number in before if number >= first}
    assert {each.interval_start >= START + HOUR for each in (await read(store, step)).depths} == {True}


async def test_a_timeline_may_be_of_one_queue_or_one_type(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 1, queue="a")
    await enqueue(store, 1, queue="b")
    await store.stats.record([meter("a", "x"), meter("a", "y"), meter("b", "x")])
    await store.stats.sample()
    clock.advance(MINUTE + LAG)
    await store.stats.sample()

    def places(found: Samples) -> list[tuple[str, str]]:
        return [(each.queue, each.type) for each in found.meters if each.interval_start == START and each.type]

    assert places(await read(store)) == [("a", "x"), ("a", "y"), ("b", "x")]
    assert places(await read(store, queue="a")) == [("a", "x"), ("a", "y")]
    assert places(await read(store, type="x")) == [("a", "x"), ("b", "x")]
    assert places(await read(store, queue="b", type="y")) == []
    looked = (await read(store, queue="b")).depths
    assert {each.queue for each in looked} == {"", "b"}
    marks = {each.interval_start for each in (await read(store, queue="nobody")).meters}
    assert marks == {each.interval_start for each in (await read(store)).meters}, "one always sees what was made"


async def test_samples_may_be_read_without_their_times(store: Store, clock: ManualClock) -> None:
    await store.stats.record([meter(completed=3)])
    clock.advance(2 * MINUTE)
    await store.stats.sample()
    whole, counted = await read(store), await read(store, times="none")
    assert [each.completed for each in counted.meters] == [each.completed for each in whole.meters]
    assert any(each.run.bins for each in whole.meters)
    assert not any(each.run.bins or each.wait.bins for each in counted.meters)
    assert whole.depths
    assert not counted.depths
    for times in ("wait", "run"):
        found = await read(store, times=times)
        assert [each.wait for each in found.meters] == [
            each.wait if times == "wait" else Histogram() for each in whole.meters
        ]
        assert [each.run for each in found.meters] == [
            each.run if times == "run" else Histogram() for each in whole.meters
        ]


async def test_depths_of_a_short_window_are_those_of_a_long_one(store: Store, clock: ManualClock) -> None:
    for queue in ("a", "b"):
        await enqueue(store, queue=queue)
    for _ in range(3):
        await store.stats.sample()
        clock.advance(MINUTE)
    whole = await read(store)
    begins = sorted({each.interval_start for each in whole.depths})
    short = SampleQuery(step=MINUTE, since=begins[1], until=begins[2])
    of_a, of_all = (msgspec.structs.replace(short, **only) for only in ({"queue": "a"}, {"by": "all"}))
    for window, names in ((of_a, ("", "a")), (of_all, ("",))):
        found = (await store.stats.samples(window)).depths
        assert list(found) == [
            each for each in whole.depths if each.queue in names and each.interval_start == begins[1]
        ]
        assert len(found) == len(names)


def _sums(meters: Sequence[Meter], by: By, times: Times) -> list[Meter]:
    """What is wanted of samples that were read whole: sums, without the times that are not wanted."""
    unwanted = {name: Histogram() for name in ("wait", "run") if times not in ("both", name)}
    groups: dict[tuple[int, str, str], list[Meter]] = {}
    for each in meters:
        place = each.interval_start, each.queue if by == "queue" else "", each.type if by == "type" else ""
        groups.setdefault(place, []).append(msgspec.structs.replace(each, **unwanted))
    return [total(queue, type_, start, found) for (start, queue, type_), found in groups.items()]


@pytest.mark.parametrize("by", ["queue", "type", "all"])
@pytest.mark.parametrize("times", ["both", "wait", "none"])
async def test_samples_may_be_read_as_sums(store: Store, clock: ManualClock, by: By, times: Times) -> None:
    for completed in (1, 2):
        both = [meter(queue, type_, completed=completed) for queue in "ab" for type_ in "xy"]
        await store.stats.record(both)
        clock.advance(MINUTE)
    clock.advance(MINUTE)
    await store.stats.sample()
    whole, summed = await read(store), await read(store, by=by, times=times)
    wanted = _sums(whole.meters, by, times)

    def in_order(meters: Sequence[Meter]) -> list[Meter]:
        return sorted(meters, key=lambda each: (each.interval_start, each.queue, each.type))

    assert in_order(summed.meters) == in_order(wanted)
    assert sum(each.completed for each in summed.meters) == 12
    assert len(summed.meters) < len(whole.meters)
    depths = {each.queue for each in summed.depths}
    assert depths == (set() if times == "none" else {each.queue for each in whole.depths} if by == "queue" else {""})


async def test_a_window_begins_with_its_first_step_and_ends_before_its_last(store: Store, clock: ManualClock) -> None:
    await live(store, clock, 10)
    found = await store.stats.samples(SampleQuery(step=MINUTE, since=START + 2 * MINUTE, until=START + 5 * MINUTE))
    assert [(each.interval_start - START) // MINUTE for each in found.meters if each.type] == [2, 3, 4]
    assert {(each.interval_start - START) // MINUTE for each in found.depths} == {2, 3, 4}


async def test_slots_stay_as_they_are(store: Store, clock: ManualClock) -> None:
    await live(store, clock, 3)
    assert [each.completed for each in (await store.stats.recent(METER_RETENTION)).meters] == [1, 1, 1]
