"""A look at a group: allowed losses are counted over pages, and no member that members add is missed."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.conformance.test_groups import claim_all, end, enqueue_group
from tests.support.seed import completed, dead, new_job
from windlass.client.graphs import map as graph_map
from windlass.client.groups import members
from windlass.client.groups.cancelling import cancel_members
from windlass.client.groups.look import Known, Look
from windlass.client.groups.members import ALIVE, Walk, count_added, pages_of
from windlass.client.groups.opening import Opening, open_group, read_opening, restart_time, seal_group, touch_group
from windlass.core.groups.ids import added_id, before_member, member_id
from windlass.core.groups.rules import GroupPayload
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.contract import Store


async def test_lost_members_are_counted_over_pages_up_to_what_is_allowed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "PAGE", 3)
    group = await enqueue_group(store, 10)
    jobs = await claim_all(store)
    lost = (1, 2, 5, 8)
    await end(store, *(dead(jobs[member_id(group, i)]) for i in lost))
    await end(store, *(completed(jobs[member_id(group, i)]) for i in range(9) if i not in lost))
    enough = Walk(store.operator, group, 10, allowed=4, age=0)
    assert (await enough.run(), enough.done, enough.lost, enough.reason) == (False, 9, 4, None)
    assert (await enough.run(3, 2), enough.done, enough.lost) == (False, 9, 4)
    too_many = Walk(store.operator, group, 10, allowed=3, age=0)
    assert await too_many.run()
    assert too_many.reason == f"its member {member_id(group, 8)} is dead (index 8)"


async def test_too_many_losses_behind_a_live_member_are_noticed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "PAGE", 2)
    group = await enqueue_group(store, 8)
    jobs = await claim_all(store)
    await end(store, *(dead(jobs[member_id(group, i)]) for i in (2, 3, 5, 7)))
    enough = Walk(store.operator, group, 8, allowed=4, age=0)
    assert (await enough.run(), enough.reason) == (False, None)
    too_many = Walk(store.operator, group, 8, allowed=3, age=0)
    assert await too_many.run()
    assert too_many.reason == f"its member {member_id(group, 7)} is dead (index 7)"


class Interrupted:
    """Verbs of a store, between two of which something else happens."""

    def __init__(self, operator: Any, after: int, happens: Callable[[], Awaitable[None]]) -> None:
        self._operator, self._left, self._happens = operator, after, happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)

    async def select(self, *args: Any) -> list[JobId]:
        self._left -= 1
        if self._left == 0:
            await self._happens()
        found: list[JobId] = await self._operator.select(*args)
        return found


async def add_ended(store: Store, group: JobId, number: int) -> None:
    """A member that a member added, and that has ended."""
    id_ = added_id(group, member_id(group, 0), str(number))
    await store.jobs.enqueue([new_job(id=id_, parent=group, queue="q1")])
    await store.operator.cancel([id_], "not needed")


@pytest.mark.parametrize("moment", range(1, 8))
async def test_a_member_that_is_added_while_members_are_counted_is_not_missed(store: Store, moment: int) -> None:
    payload = GroupPayload(await enqueue_group(store, 1), 1, need=0)
    group = payload.group
    jobs = await claim_all(store)
    await end(store, completed(jobs[member_id(group, 0)]))
    await add_ended(store, group, 1)
    look = Look(store, payload, None, 0)
    racing: Any = Interrupted(store.operator, moment, lambda: add_ended(store, group, 2))
    look._operator = racing
    seen = await look.run(Known())
    assert not seen.ended or seen.added == 2
    again = await Look(store, payload, None, 0).run(Known())
    assert (again.ended, again.size, again.added) == (True, 1, 2)


async def test_a_seal_is_kept_whatever_comes_after_it(store: Store) -> None:
    group = await enqueue_group(store, 1)
    first = await open_group(store, group)
    assert (first.size, await open_group(store, group)) == (None, first)
    await touch_group(store, group)
    assert await seal_group(store, group, 7) == 7
    assert await seal_group(store, group, 8) == 7
    await touch_group(store, group)
    await restart_time(store, group, None)
    found = await read_opening(store, group)
    assert found is not None
    assert (found.size, found.since >= first.touched) == (7, True)


async def test_a_group_that_was_never_open_gets_its_time_again(store: Store) -> None:
    group = await enqueue_group(store, 1)
    assert await read_opening(store, group) is None
    await restart_time(store, group, 3)
    found = await read_opening(store, group)
    assert isinstance(found, Opening)
    assert (found.size, found.since > 0) == (3, True)


async def test_members_that_end_while_members_are_counted_make_the_count_no_longer(store: Store) -> None:
    """On a store that keeps no index by status, each page more would be a walk over all live members."""
    group = await enqueue_group(store, 8)
    jobs = iter(sorted((await claim_all(store)).items()))

    class Busy:
        """Verbs of a store in which a member ends before each read."""

        reads = 0

        async def select(self, *args: Any) -> list[JobId]:
            self.reads += 1
            await end(store, completed(next(jobs)[1]))
            return await store.operator.select(*args)

    busy: Any = Busy()
    counted = await count_added(busy, group, (Status.COMPLETED,), before_member(group, 0))
    assert (counted, busy.reads) == (1, 1)
    pages = [ids async for ids in pages_of(busy, group, (Status.COMPLETED,), size=2)]
    assert ([len(ids) for ids in pages], busy.reads) == ([2, 1], 3)


async def test_members_that_are_stored_while_their_group_is_cancelled_are_cancelled_too(store: Store) -> None:
    group = await enqueue_group(store, 2)
    late = [member_id(group, i) for i in range(2, 5)]
    left = iter(late)

    class Storing:
        """Verbs of a store in which the next member is stored after each cancel."""

        select, get = store.operator.select, store.operator.get

        async def cancel(self, ids: list[JobId], reason: str) -> Any:
            found = await store.operator.cancel(ids, reason)
            if (id_ := next(left, None)) is not None:
                await store.jobs.enqueue([new_job(id=id_, parent=group, flow=group)])
            return found

    storing: Any = Storing()
    await cancel_members(storing, group, ALIVE, "not needed")
    assert [job and job.status for job in await store.operator.get(late)] == [Status.CANCELLED] * 3


async def test_dropped_members_of_a_map_are_read_together(store: Store) -> None:
    group = await enqueue_group(store, 4)
    jobs = await claim_all(store)
    await end(store, *(completed(jobs[member_id(group, i)]) for i in range(4)))
    await store.operator.delete([member_id(group, i) for i in range(3)])
    reads: list[str] = []

    class Counted:
        """Verbs of a store, of which reads by id are noted."""

        def __getattr__(self, name: str) -> Any:
            reads.extend([name] if name in ("get", "outcomes") else [])
            return getattr(store.operator, name)

    counted: Any = Counted()
    assert await graph_map._ended(counted, group, 4) == (4, None)
    assert reads == ["get", "outcomes"]
