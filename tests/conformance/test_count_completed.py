"""count_completed: completed children of a job in a range of ids, and the looks of a group that use it."""

from typing import Any

import pytest

from tests.conformance.test_groups import claim_all, end, enqueue_group
from tests.support.clock import ManualClock
from tests.support.seed import cancelled, completed, dead, enqueue, new_job, open_lease, put, request
from windlass.client.groups import members
from windlass.client.groups.members import Walk
from windlass.core.groups.ids import before_member, member_id, member_index
from windlass.core.ids import JobId
from windlass.core.moments import DAY
from windlass.core.status import LIVE
from windlass.store.contract import OperatorStore, Store

SIZE = 30
ALL = range(SIZE)


async def complete(store: Store, group: JobId, indexes: range) -> None:
    jobs = await claim_all(store)
    await end(store, *(completed(jobs[member_id(group, i)]) for i in indexes))


async def count(store: Store, group: JobId, start: int = 0, end: int = SIZE) -> tuple[int, int | None]:
    """Completed ones, and the index of the first live one."""
    found = await store.operator.count_completed(group, before_member(group, start), member_id(group, end))
    assert found is not None
    completed, live = found
    return completed, None if live is None else member_index(group, live)


async def test_completed_children_are_counted_between_two_ids_up_to_the_first_live_one(store: Store) -> None:
    group, other = await enqueue_group(store, SIZE), await enqueue_group(store, 5)
    assert await count(store, group) == (0, 0)
    await complete(store, group, range(20))
    assert await count(store, group) == (20, 20)
    assert await count(store, group, 0, 20) == (20, None)
    assert await count(store, group, 5, 9) == (4, None)
    assert await count(store, group, 19, 21) == (1, 20)
    assert await count(store, group, 21) == (0, 21)
    assert await count(store, other, 0, 5) == (0, 0)
    # Both ids are outside of the range.
    found = await store.operator.count_completed(group, member_id(group, 3), member_id(group, 7))
    assert found == (3, None)


@pytest.mark.parametrize("live", range(0, 9, 2))
async def test_no_queue_is_counted_further_than_the_first_live_child_of_all(store: Store, live: int) -> None:
    group = await enqueue_group(store, 9)
    jobs = await claim_all(store)
    await end(store, *(completed(jobs[member_id(group, i)]) for i in range(9) if i != live))
    assert await count(store, group, 0, 9) == (live, live)


async def test_members_that_are_dead_cancelled_or_dropped_are_not_counted(store: Store, clock: ManualClock) -> None:
    group = await enqueue_group(store, 8)
    jobs = await claim_all(store)
    await end(
        store, dead(jobs[member_id(group, 2)]), *(completed(jobs[member_id(group, i)]) for i in (0, 1, 4, 5, 6))
    )
    await store.operator.cancel([member_id(group, 7)], "not needed")
    await store.operator.cancel([member_id(group, 3)], "not needed")
    await end(store, cancelled(jobs[member_id(group, 3)]), cancelled(jobs[member_id(group, 7)]))
    assert await count(store, group) == (5, None)
    await store.operator.delete([member_id(group, 1)])
    assert await count(store, group) == (4, None)
    await store.operator.retry([member_id(group, 5)])
    assert await count(store, group) == (2, 5)
    await store.operator.cancel([member_id(group, 5)], "not needed")
    clock.advance(400 * DAY)
    while await store.operator.prune(100):
        pass
    assert await count(store, group) == (0, None)


async def test_more_children_are_counted_than_a_store_reads_at_a_time(store: Store) -> None:
    size = 9_000
    group = await enqueue_group(store, 0)
    for first in range(0, size, 1_000):
        rows = [new_job(id=member_id(group, i), parent=group, queue="q1") for i in range(first, first + 1_000)]
        await store.jobs.enqueue(rows)
    await store.operator.cancel([member_id(group, 4_321)], "not needed")
    await open_lease(store)
    claimed = 0
    while jobs := await store.jobs.claim(request(claim=claimed, queues=("q1",), types=("t",), limit=1_000)):
        await end(store, *(completed(job) for job in jobs))
        claimed += len(jobs)
    assert (claimed, await count(store, group, 0, size)) == (size - 1, (size - 1, None))
    assert await count(store, group, 4_322, size) == (size - 4_322, None)


@pytest.mark.parametrize("others", [0, 250])
async def test_members_of_every_live_status_end_the_count(store: Store, others: int) -> None:
    """Beside few live jobs of the queue, and beside many."""
    await enqueue(store, others, queue="q1", type="other")
    await open_lease(store)
    for number, status in enumerate((*sorted(LIVE), None)):
        group = await enqueue_group(store, 0)
        await store.jobs.enqueue([new_job(id=member_id(group, i), parent=group, queue="q1") for i in range(3)])
        claimed = await store.jobs.claim(request(claim=number, queues=("q1",), types=("t",), limit=3))
        await end(store, *(completed(job) for job in claimed))
        member: dict[str, Any] = {"id": member_id(group, 3), "parent": group, "queue": "q1"}
        if status is None:
            await store.jobs.enqueue([new_job(parents=(group,), **member)])
        else:
            await put(store, status, **member)
        assert await count(store, group) == (3, 3), status


class Counted:
    """The verbs of a store; keeps what was counted and how often a page was read."""

    def __init__(self, operator: OperatorStore) -> None:
        self._operator = operator
        self.found: list[int] = []
        self.pages = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)

    async def count_completed(self, *ids: JobId) -> tuple[int, JobId | None] | None:
        found = await self._operator.count_completed(*ids)
        self.found.append(-1 if found is None else found[0])
        return found

    async def select(self, *values: Any) -> list[JobId]:
        self.pages += 1
        found: list[JobId] = await self._operator.select(*values)
        return found


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "PAGE", 2)
    monkeypatch.setattr(members, "MAX_COUNTED", 12)


@pytest.mark.usefixtures("small_pages")
async def test_a_walk_counts_completed_members_up_to_the_first_live_one(store: Store) -> None:
    group, operator = await enqueue_group(store, SIZE), Counted(store.operator)
    await complete(store, group, range(25))
    walk = Walk(operator, group, SIZE, allowed=0, age=0)
    assert (await walk.run(), walk.done, walk.lost, operator.found) == (False, 25, 0, [12, 12, 1])
    assert operator.pages <= 2, "one page, and no lost ones behind the live one"
    await complete(store, group, range(25, SIZE))
    assert (await walk.run(25), walk.done, operator.found[3:]) == (True, SIZE, [5])


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("at", [0, 7, 13, SIZE - 1])
@pytest.mark.parametrize("ended", ["cancelled", "deleted"])
async def test_a_walk_counts_no_further_than_a_member_that_did_not_complete(
    store: Store, at: int, ended: str
) -> None:
    group, operator = await enqueue_group(store, SIZE), Counted(store.operator)
    await store.operator.cancel([member_id(group, at)], "not needed")
    if ended == "deleted":
        await store.operator.delete([member_id(group, at)])
    jobs = await claim_all(store)
    await end(store, *(completed(jobs[member_id(group, i)]) for i in ALL if i != at))
    strict = Walk(operator, group, SIZE, allowed=0, age=0)
    assert (await strict.run(), strict.done, strict.lost) == (True, at, 1)
    assert strict.reason is not None
    assert f"index {at}" in strict.reason
    for allowed in (1, None):
        walk = Walk(operator, group, SIZE, allowed=allowed, age=0)
        assert (await walk.run(), walk.done, walk.reason) == (True, SIZE, None)
        assert walk.lost == 1 or allowed is None
    assert 11 in operator.found or at == SIZE - 1, "the range with that member"


@pytest.mark.usefixtures("small_pages")
async def test_a_walk_goes_on_beside_many_jobs_that_did_not_complete(store: Store) -> None:
    group = await enqueue_group(store, SIZE)
    await store.operator.cancel(await enqueue(store, 300, queue="q1", type="other"), "not needed")
    await complete(store, group, ALL)
    walk = Walk(store.operator, group, SIZE, allowed=0, age=0)
    assert (await walk.run(), walk.done, walk.reason) == (True, SIZE, None)
