"""Jobs that are stored after their flow was cancelled are cancelled too, whether their producer lives or has died."""

from typing import Any

import pytest

from tests.conformance.test_groups import QUEUES, TYPES, claim_all, end, enqueue_group
from tests.support.clock import ManualClock
from tests.support.seed import completed, new_job, open_lease, request, status_of
from windlass.client.groups.cancelled import KIND, MAX_AT_ONCE, cancel_if_late, retry_jobs
from windlass.client.verbs.flows import cancel_flow
from windlass.coordinator import cancels
from windlass.coordinator.cancels import Cancels
from windlass.core.events import Event
from windlass.core.graphs.ids import FLOW_TYPE, JOIN_TYPE, MAP_TYPE, map_id, node_id
from windlass.core.groups.ids import GROUP_TYPE, Role, callback_id, member_id, new_group_id, watcher_id
from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.core.log_events import FlowEnded
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store

SIZE = 5
HOUR = 3600 * SECOND


class Duty:
    """The duty, and the ends of flows that it counted."""

    def __init__(self, store: Store) -> None:
        self.heard: list[Event] = []
        self.run = Cancels(store, self.heard.append).run

    @property
    def counted(self) -> list[tuple[JobId, str]]:
        return [(event.flow, event.kind) for event in self.heard if isinstance(event, FlowEnded)]


@pytest.fixture
def duty(store: Store, monkeypatch: pytest.MonkeyPatch) -> Duty:
    monkeypatch.setattr(cancels, "BUDGET_SECONDS", 60.0)
    return Duty(store)


async def begin(store: Store, stored: int, **payload: Any) -> JobId:
    """A group of SIZE members, of which some are stored."""
    group = new_group_id()
    fields = (
        f'{{"group": "{group}", "size": {SIZE}}}'
        if not payload
        else f'{{"group": "{group}", "size": 0, "open": true}}'
    )
    own = NewJob(id=group, type=GROUP_TYPE, payload=fields, delay=60 * SECOND, queue="q0", flow=group)
    await store.jobs.enqueue([own])
    await store_members(store, group, range(stored))
    return group


async def store_members(store: Store, group: JobId, indexes: Any) -> None:
    await store.jobs.enqueue([new_job(id=member_id(group, i), parent=group, queue=QUEUES[i % 3]) for i in indexes])


async def cancel(store: Store, flow: JobId, reason: str = "not needed") -> None:
    (job,) = await store.operator.get([flow])
    assert job is not None
    await cancel_flow(store, job, reason)


async def statuses(store: Store, group: JobId) -> list[Status | None]:
    jobs = await store.operator.get([member_id(group, i) for i in range(SIZE)])
    return [None if job is None else job.status for job in jobs]


async def is_watched(store: Store, flow: JobId, clock: ManualClock) -> bool:
    clock.advance(1)
    return (await store.documents.get(KIND, [flow]))[0] is not None


async def test_members_that_a_dead_producer_left_are_cancelled_by_the_next_turn(
    store: Store, clock: ManualClock, duty: Duty
) -> None:
    group = await begin(store, 2)
    await cancel(store, group)
    await duty.run()
    await store_members(store, group, range(2, 4))
    await duty.run()
    assert await statuses(store, group) == [Status.CANCELLED] * 4 + [None]
    await store_members(store, group, [4])
    await duty.run()
    assert await statuses(store, group) == [Status.CANCELLED] * SIZE
    await open_lease(store)
    assert await store.jobs.claim(request(queues=QUEUES, types=TYPES, limit=100)) == []
    await duty.run()
    assert await is_watched(store, group, clock), "a process that stood still may add another"
    assert await duty.run() == cancels.EVERY_SECONDS, "all are known"
    clock.advance(cancels.KNOWN)
    await duty.run()
    assert not await is_watched(store, group, clock)


async def test_a_producer_cancels_what_it_stored_after_the_cancel(store: Store) -> None:
    group = await begin(store, 2)
    assert not await cancel_if_late(store, group)
    await cancel(store, group)
    await store_members(store, group, range(2, SIZE))
    assert await cancel_if_late(store, group)
    assert await statuses(store, group) == [Status.CANCELLED] * SIZE


async def test_a_member_that_began_before_it_was_found_is_asked_to_stop_once(store: Store, duty: Duty) -> None:
    group = await begin(store, 2)
    await cancel(store, group)
    await store_members(store, group, [2])
    jobs = await claim_all(store)
    await duty.run()
    (late,) = await store.operator.get([member_id(group, 2)])
    assert late is not None
    assert late.cancel_requested
    await duty.run()
    (again,) = await store.operator.get([member_id(group, 2)])
    assert again is not None
    assert again.version == late.version
    await end(store, completed(jobs[late.id]))
    await store_members(store, group, [3, 4])
    await duty.run()
    assert await statuses(store, group) == [*[Status.CANCELLED] * 2, Status.COMPLETED, *[Status.CANCELLED] * 2]


async def test_what_comes_to_an_open_group_long_after_its_cancel_is_cancelled(
    store: Store, clock: ManualClock, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No worker may have been there to finish the enqueue of a dead producer."""
    group = await begin(store, 2, open=True)
    await cancel(store, group)
    await duty.run()
    clock.advance(6 * HOUR)
    await duty.run()
    await store_members(store, group, [2])
    await duty.run()
    assert (await statuses(store, group))[2] is Status.CANCELLED
    monkeypatch.setattr(cancels, "QUIET_SECONDS", 0.0)
    await duty.run()
    assert not await is_watched(store, group, clock)


async def test_a_retried_job_of_a_cancelled_flow_runs(store: Store, duty: Duty) -> None:
    group = await begin(store, 2)
    await cancel(store, group)
    await duty.run()
    await retry_jobs(store, [member_id(group, 0)])
    await duty.run()
    assert (await statuses(store, group))[:2] == [Status.PENDING, Status.CANCELLED]
    assert not await cancel_if_late(store, group)
    await cancel(store, group, "again")
    await store_members(store, group, [2])
    await duty.run()
    assert (await statuses(store, group))[:3] == [Status.CANCELLED] * 3


async def test_another_group_of_the_same_name_is_not_cancelled(store: Store, clock: ManualClock, duty: Duty) -> None:
    group = await begin(store, 2)
    await cancel(store, group)
    await store.operator.delete([group, *(member_id(group, i) for i in range(2))])
    clock.advance(25 * HOUR)
    await store.operator.prune(100)
    await enqueue_group(store, 2, group)
    assert not await cancel_if_late(store, group)
    await duty.run()
    assert (await statuses(store, group))[:2] == [Status.PENDING] * 2
    assert not await is_watched(store, group, clock)


async def test_a_cancel_that_ends_a_flow_is_counted_once(store: Store, duty: Duty) -> None:
    group, other = await begin(store, SIZE), await begin(store, 2)
    other_duty = Duty(store)
    for _ in range(2):
        await cancel(store, group)
        await cancel(store, other)
    for each in (duty, other_duty, duty):
        await each.run()
    assert sorted(duty.counted) == sorted([(group, "group"), (other, "group")])
    assert other_duty.counted == []
    await cancel(store, group)
    await cancel(store, other)
    await duty.run()
    assert len(duty.counted) == 2
    await retry_jobs(store, [group])
    await cancel(store, group)
    await duty.run()
    assert duty.counted[2:] == [(group, "group")], "it ended again"


async def test_a_flow_whose_runner_ends_it_is_not_counted_by_the_coordinator(store: Store, duty: Duty) -> None:
    group = await begin(store, 1)
    await store.operator.run_now([group])
    jobs = await claim_all(store)
    assert group in jobs
    await cancel(store, group)
    await duty.run()
    assert duty.counted == []


async def test_nodes_that_come_after_the_cancel_of_their_graph_are_cancelled(
    store: Store, clock: ManualClock, duty: Duty
) -> None:
    flow = new_group_id()
    payload = f'{{"flow": "{flow}", "nodes": 3, "jobs": 4}}'
    await store.jobs.enqueue([NewJob(id=flow, type=FLOW_TYPE, payload=payload, delay=60 * SECOND, queue="q0")])
    await store.jobs.enqueue([new_job(id=node_id(flow, 0), parent=flow, flow=flow, queue="q1")])
    adder, joins = map_id(flow, 1), node_id(flow, 1)
    map_jobs = [
        NewJob(id=adder, type=MAP_TYPE, payload="{}", queue="q1", flow=flow),
        NewJob(id=joins, type=JOIN_TYPE, payload="{}", queue="q1", parent=flow, parents=(adder,), flow=flow),
    ]
    await store.jobs.enqueue(map_jobs)
    await cancel(store, flow)
    await duty.run()
    assert duty.counted == [(flow, "graph")]
    late = [new_job(id=node_id(flow, 2), parent=flow, flow=flow, queue="q2")]
    late += [new_job(id=member_id(adder, 0), parent=adder, flow=flow, queue="q2")]
    await store.jobs.enqueue(late)
    await duty.run()
    assert [await status_of(store, job.id) for job in late] == [Status.CANCELLED] * 2
    clock.advance(cancels.KNOWN)
    await duty.run()
    assert not await is_watched(store, flow, clock)


async def test_always_is_woken_after_the_last_late_member(store: Store, duty: Duty) -> None:
    group = await begin(store, 2)
    always = watcher_id(group, Role.ALWAYS)
    await store.jobs.enqueue([NewJob(id=always, type=GROUP_TYPE, payload="{}", delay=HOUR, queue="q0", flow=group)])
    await store.jobs.enqueue(
        [new_job(id=callback_id(group, Role.ALWAYS), parent=always, parents=(always,), flow=group)]
    )
    await cancel(store, group)
    await store_members(store, group, range(2, SIZE))
    await duty.run()
    assert await status_of(store, always) is Status.PENDING


async def test_more_cancelled_flows_than_one_turn_reads_are_all_finished(
    store: Store, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancels, "MAX_FLOWS", 2)
    groups = [await begin(store, 1) for _ in range(5)]
    for group in groups:
        await cancel(store, group)
        await store_members(store, group, range(1, SIZE))
    pauses = [await duty.run() for _ in range(3)]
    assert pauses == [cancels.NEXT_SECONDS] * 2 + [cancels.SOON_SECONDS]
    assert [await statuses(store, group) for group in groups] == [[Status.CANCELLED] * SIZE] * 5


def test_a_list_that_redis_stores_in_portions_is_checked_by_its_producer() -> None:
    from windlass.store.redis.verbs.large_batch import MAX_WEIGHT

    assert MAX_AT_ONCE <= MAX_WEIGHT
