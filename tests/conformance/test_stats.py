"""record, recent, oldest: statistics that add up, and go after an hour."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import enqueue, enqueue_one, new_job, open_lease, request
from windlass.core.moments import DAY, SECOND
from windlass.core.stats.meter import INTERVAL, METER_RETENTION, RATE_WINDOW, Meter, SumBy, histogram, interval_of
from windlass.core.stats.recent_stats import by_queue, by_type
from windlass.store.contract import Store


def meter(**fields: object) -> Meter:
    given = {"queue": "q", "type": "t", "completed": 1, "wait": histogram([100]), "run": histogram([7, 90_000])}
    return Meter(**{**given, **fields})  # type: ignore[arg-type]


async def recorded(store: Store, length: int = METER_RETENTION) -> list[tuple[str, str, int]]:
    return [(each.queue, each.type, each.completed) for each in (await store.stats.recent(length)).meters]


async def test_what_is_recorded_is_read_back_whole_in_the_slot_of_the_stores_clock(
    store: Store, clock: ManualClock
) -> None:
    given = meter(completed=1, failed=2, dead=3, cancelled=4, snoozed=5, crashed=6)
    await store.stats.record([given])
    recent = await store.stats.recent(SECOND)
    slot = interval_of(clock.wall())
    assert recent.now == clock.wall()
    (found,) = recent.meters
    assert found == meter(completed=1, failed=2, dead=3, cancelled=4, snoozed=5, crashed=6, interval_start=slot)


async def test_what_is_recorded_in_one_slot_adds_up(store: Store) -> None:
    await store.stats.record([meter(completed=2), meter(type="other")])
    await store.stats.record([meter(completed=3, dead=1, wait=histogram([100, 5]))])
    other, whole = (await store.stats.recent(SECOND)).meters
    assert (other.type, whole.type) == ("other", "t")
    assert (whole.completed, whole.dead) == (5, 1)
    assert whole.wait == histogram([100, 100, 5])
    assert whole.run == histogram([7, 90_000, 7, 90_000])


async def test_one_call_may_hold_the_same_type_twice(store: Store) -> None:
    await store.stats.record([meter(completed=2), meter(completed=3)])
    assert await recorded(store) == [("q", "t", 5)]


async def test_recording_nothing_is_fine(store: Store) -> None:
    await store.stats.record([])
    assert await recorded(store) == []


async def test_slots_queues_and_types_are_kept_apart_and_in_order(store: Store, clock: ManualClock) -> None:
    await store.stats.record([meter(queue="b"), meter(queue="a", type="z"), meter(queue="a", type="y")])
    clock.advance(INTERVAL)
    await store.stats.record([meter(queue="a", type="y")])
    recent = (await store.stats.recent(METER_RETENTION)).meters
    assert [(each.queue, each.type) for each in recent] == [("a", "y"), ("a", "z"), ("b", "t"), ("a", "y")]
    assert recent[3].interval_start - recent[0].interval_start == INTERVAL


async def test_recent_reaches_as_far_as_it_is_asked_to(store: Store, clock: ManualClock) -> None:
    for completed in (1, 2, 3):
        await store.stats.record([meter(completed=completed)])
        clock.advance(INTERVAL)
    assert [completed for _, _, completed in await recorded(store, INTERVAL)] == [3]
    assert [completed for _, _, completed in await recorded(store, 2 * INTERVAL)] == [2, 3]


@pytest.mark.parametrize("by", ["queue", "type"])
async def test_recent_may_be_two_sums_of_each_queue_or_type(store: Store, clock: ManualClock, by: SumBy) -> None:
    for completed in (1, 2, 3, 4, 5):
        clock.advance(INTERVAL)
        some = [meter(queue=queue, type=type_, completed=completed) for queue in "ab" for type_ in ("t", "tt")]
        await store.stats.record(some)
    whole, summed = await store.stats.recent(METER_RETENTION), await store.stats.recent(METER_RETENTION, by=by)
    assert [len(part.meters) for part in summed.by(lambda each: getattr(each, by)).values()] == [2, 2]
    assert (summed.added_up, whole.added_up) == (20, 0)
    assert summed.total() == whole.total()
    assert summed.rate(RATE_WINDOW) == whole.rate(RATE_WINDOW) > 0
    stats = by_queue if by == "queue" else by_type
    assert stats(summed) == stats(whole)
    (found,) = {each.queue for each in (await store.stats.recent(METER_RETENTION, "a", None, "queue")).meters}
    assert found == "a"


async def test_recent_may_be_of_one_queue_or_one_type(store: Store, clock: ManualClock) -> None:
    for _ in range(2):
        await store.stats.record([meter(queue=queue, type=type_) for queue in "ab" for type_ in ("t", "tt")])
        clock.advance(INTERVAL)

    async def read(queue: str | None = None, type_: str | None = None) -> list[tuple[str, str]]:
        found = await store.stats.recent(METER_RETENTION, queue, type_)
        return [(each.queue, each.type) for each in found.meters]

    assert await read("a") == [("a", "t"), ("a", "tt")] * 2
    assert await read(type_="t") == [("a", "t"), ("b", "t")] * 2
    assert await read("b", "tt") == [("b", "tt")] * 2
    assert await read("c") == []
    assert len(await read()) == 8


async def test_old_slots_are_pruned(store: Store, clock: ManualClock) -> None:
    await store.stats.record([meter(completed=1)])
    clock.advance(METER_RETENTION)
    await store.stats.record([meter(completed=2)])
    await store.operator.prune(10)
    assert [completed for _, _, completed in await recorded(store, DAY)] == [1, 2]
    clock.advance(INTERVAL)
    assert list(await store.operator.prune(10)) == [], "meters are not jobs"
    assert [completed for _, _, completed in await recorded(store, DAY)] == [2]


async def test_the_oldest_is_the_pending_job_that_waits_longest_in_its_queue(
    store: Store, clock: ManualClock
) -> None:
    assert await store.stats.oldest() == {}
    await enqueue_one(store, queue="a")
    clock.advance(3 * SECOND)
    await enqueue(store, 2, queue="a")
    await enqueue_one(store, queue="b")
    clock.advance(SECOND)
    assert await store.stats.oldest() == {"a": 4 * SECOND, "b": SECOND}


@pytest.mark.parametrize("priority", [-32768, 0, 32767])
async def test_the_oldest_is_found_at_whatever_priority_it_waits(
    store: Store, clock: ManualClock, priority: int
) -> None:
    await enqueue_one(store, priority=priority)
    clock.advance(SECOND)
    await store.jobs.enqueue([new_job(priority=each) for each in (-32768, -1, 0, 1, 32767)])
    assert await store.stats.oldest() == {"default": SECOND}


async def test_a_job_waits_from_when_it_is_due_and_until_it_is_claimed(store: Store, clock: ManualClock) -> None:
    await enqueue_one(store, delay=10 * SECOND)
    assert await store.stats.oldest() == {}
    clock.advance(10 * SECOND)
    await store.jobs.admit(10)
    clock.advance(SECOND)
    assert await store.stats.oldest() == {"default": SECOND}
    await open_lease(store)
    await store.jobs.claim(request())
    assert await store.stats.oldest() == {}
