"""Finished jobs are dropped by the day, without a long wait for any session; counts are added up beside the work."""

import asyncio

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import put, status_of
from windlass.core.flow.queue import QueueSettings
from windlass.core.moments import DAY
from windlass.core.status import Status
from windlass.store.contract import Store

_SUMS = "SELECT queue, status, day, sum(jobs)::bigint FROM windlass.history_counts GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"


async def test_a_partition_that_is_being_read_is_emptied_the_next_time(
    store: Store, clock: ManualClock, other: Other
) -> None:
    id_ = await put(store, Status.COMPLETED)
    clock.advance(8 * DAY)
    await other.does("SELECT count(*) FROM windlass.history")
    assert list(await store.operator.prune(10)) == []
    assert await status_of(store, id_) is Status.COMPLETED
    await other.commits()
    await store.operator.prune(10)
    assert await store.operator.get([id_]) == [None]
    assert await other.does(_SUMS) == []


async def test_a_partition_that_another_day_uses_by_now_is_not_emptied(
    store: Store, clock: ManualClock, other: Other
) -> None:
    old = await put(store, Status.COMPLETED)
    clock.advance(32 * DAY)
    young = await put(store, Status.COMPLETED)
    assert await other.does("SELECT count(*) FROM windlass.history GROUP BY partition") == [(2,)]
    await other.commits()
    assert list(await store.operator.prune(10)) == [old]
    await store.operator.prune(10)
    assert await status_of(store, young) is Status.COMPLETED
    assert [row[3] for row in await other.does(_SUMS)] == [1]


async def test_a_job_that_came_into_the_partition_while_it_was_locked_is_not_lost(
    store: Store, clock: ManualClock, other: Other
) -> None:
    old = await put(store, Status.COMPLETED)
    clock.advance(8 * DAY)
    # A server with a wrong clock files a job that is to stay for another month.
    await other.does("UPDATE windlass.history_counts SET day = day + 32")
    await other.does("UPDATE windlass.history SET drop_at = drop_at + 32 * 86400000000")
    pruning = asyncio.create_task(store.operator.prune(10))
    await other.is_waited_for()
    await other.commits()
    assert list(await pruning) == []
    assert await status_of(store, old) is Status.COMPLETED


async def test_counts_are_the_same_after_they_were_added_up_by_two(store: Store, other: Other) -> None:
    add = (
        "INSERT INTO windlass.history_counts SELECT 'q' || n %% 3, 'completed', 90000, 1 - (n %% 7) / 6"
        " FROM generate_series(1, 700) AS n"
    )
    await other.does(add)
    before = await other.does(_SUMS)
    await other.commits()
    await other.does(add)  # not committed while the others add up
    await asyncio.gather(store.operator.prune(10), store.operator.prune(10))
    await other.commits()
    assert [row[3] for row in await other.does(_SUMS)] == [2 * row[3] for row in before]
    assert (await other.does("SELECT count(*) < 710 FROM windlass.history_counts")) == [(True,)]


async def test_tombstones_tell_how_the_last_attempt_ended_whatever_else_is_written_there(
    store: Store, other: Other
) -> None:
    id_ = await put(store, Status.DEAD)
    await other.does("UPDATE windlass.history SET attempts = replace(attempts, 'hopeless', 'a\\u0000\\ud800')")
    await other.commits()
    await store.operator.delete([id_])
    assert await other.does("SELECT attempt, outcome FROM windlass.tombstones") == [(1, "dead")]


async def test_tombstones_are_forgotten_by_the_day(store: Store, clock: ManualClock, other: Other) -> None:
    await store.queues.change("default", QueueSettings(retention={Status.COMPLETED: 0}))
    first = await put(store, Status.COMPLETED)
    clock.advance(DAY)
    second = await put(store, Status.COMPLETED)
    await store.operator.prune(10)
    assert await _tombstones(other) == {first, second}, "the first is over, but its day is not"
    clock.advance(DAY)
    await store.operator.prune(10)
    assert await _tombstones(other) == {second}
    clock.advance(DAY)
    await store.operator.prune(10)
    assert await _tombstones(other) == set()


async def test_tombstones_that_are_not_over_stay_when_the_clock_was_set_back(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await store.queues.change("default", QueueSettings(retention={Status.COMPLETED: 0}))
    id_ = await put(store, Status.COMPLETED)
    for _ in range(3):
        clock.jump_wall(-DAY)
        await store.operator.prune(10)
        assert await _tombstones(other) == {id_}


async def _tombstones(other: Other) -> set[str]:
    rows = await other.does("SELECT id::text FROM windlass.tombstones")
    await other.commits()
    return {row[0] for row in rows}
