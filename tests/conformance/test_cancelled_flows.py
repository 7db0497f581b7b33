"""What is cancelled with a flow, what a retry takes back, and that each end is counted, by whatever process."""

from typing import Any

import pytest

from tests.conformance.test_groups import claim_all, end
from tests.conformance.test_late_members import SIZE, Duty, begin, cancel, is_watched, statuses, store_members
from tests.support.clock import ManualClock
from tests.support.seed import completed, new_job, snoozed, status_of
from windlass.client.groups import cancelled, cancelling
from windlass.client.groups.cancelled import (
    KIND,
    LONG,
    cancel_if_late,
    cancel_if_left,
    cancel_that_holds,
    note_cancel,
    retry_jobs,
)
from windlass.client.groups.ends import GroupEnds
from windlass.client.groups.opening import close_group, open_group
from windlass.coordinator import cancels
from windlass.core.events import Event
from windlass.core.graphs.ids import FLOW_TYPE, JOIN_TYPE, map_id, node_id
from windlass.core.groups.ids import GROUP_TYPE, MEMBER_TYPE, link_id, member_id, named_group_id, new_group_id
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job, NewJob
from windlass.core.log_events import FlowEnded
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import Settled


@pytest.fixture
def duty(store: Store, monkeypatch: pytest.MonkeyPatch) -> Duty:
    monkeypatch.setattr(cancels, "BUDGET_SECONDS", 60.0)
    return Duty(store)


async def note(store: Store, flow: JobId) -> None:
    """Only the record of a cancel: its process ends before it cancels anything."""
    (job,) = await store.operator.get([flow])
    assert job is not None
    await note_cancel(store, job, "not needed")


async def end_all(store: Store) -> None:
    jobs = await claim_all(store)
    await end(store, *(completed(job) for job in jobs.values()))


async def flow_with_group(store: Store) -> tuple[JobId, JobId, list[NewJob]]:
    """A graph whose node is cancelled, and its group, which is not stored yet: it is in another queue."""
    flow = new_group_id()
    group = map_id(flow, 0)
    payload = f'{{"flow": "{flow}", "nodes": 1, "jobs": 2}}'
    await store.jobs.enqueue(
        [
            NewJob(id=flow, type=FLOW_TYPE, payload=payload, delay=60 * SECOND, queue="q0"),
            NewJob(id=node_id(flow, 0), type=JOIN_TYPE, payload="{}", queue="q1", parent=flow, flow=flow),
        ]
    )
    fields = f'{{"group": "{group}", "size": 2}}'
    late = [NewJob(id=group, type=GROUP_TYPE, payload=fields, delay=60 * SECOND, queue="q2", flow=group)]
    late += [new_job(id=member_id(group, i), parent=group, flow=group, queue="q2") for i in range(2)]
    return flow, group, late


@pytest.mark.parametrize("by", ["producer", "coordinator"])
async def test_a_link_that_is_stored_after_its_cancelled_member_is_cancelled(
    store: Store, duty: Duty, by: str
) -> None:
    """On Redis the queue of a member may be stored before that of the links before it."""
    group = await begin(store, SIZE - 1)
    link = link_id(f"{group}/{SIZE - 1}", 0)
    member: dict[str, Any] = {"type": MEMBER_TYPE, "payload": "{}", "queue": "q1", "parents": (link,)}
    late = new_job(id=link, flow=group, queue="q2")
    await store.jobs.enqueue([late, NewJob(id=member_id(group, SIZE - 1), parent=group, flow=group, **member)])
    await cancel(store, group)
    await store.operator.retry([link])  # as if it was stored only now
    await store.operator.cancel([member_id(group, SIZE - 1)], "not needed")
    assert await status_of(store, link) is Status.PENDING
    if by == "producer":
        assert await cancel_if_late(store, group)
    else:
        await duty.run()
    assert await status_of(store, link) is Status.CANCELLED
    assert await status_of(store, member_id(group, SIZE - 1)) is Status.CANCELLED


async def test_a_cancel_is_watched_until_the_links_of_its_members_are_stored(
    store: Store, clock: ManualClock, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = await begin(store, SIZE)
    await cancel(store, group)

    async def behind(*_: Any) -> tuple[list[Job], bool]:
        return [], False

    with monkeypatch.context() as patch:
        patch.setattr(cancels, "late_behind", behind)
        clock.advance(cancels.KNOWN)
        await duty.run()
        assert await is_watched(store, group, clock)
    await duty.run()
    assert not await is_watched(store, group, clock)


async def test_a_group_that_is_stored_after_its_cancelled_node_is_cancelled(
    store: Store, clock: ManualClock, duty: Duty
) -> None:
    flow, group, late = await flow_with_group(store)
    await cancel(store, flow)
    await duty.run()
    clock.advance(cancels.KNOWN)
    await duty.run()
    assert await is_watched(store, flow, clock), "the group of its node is not known"
    await store.jobs.enqueue(late)
    await duty.run()
    assert [await status_of(store, job.id) for job in late] == [Status.CANCELLED] * 3
    for _ in range(2):
        clock.advance(cancels.KNOWN)
        await duty.run()
    assert not await is_watched(store, flow, clock)
    assert not await is_watched(store, group, clock)


async def test_a_cancel_whose_process_dies_is_finished_and_counted(store: Store, duty: Duty) -> None:
    group = await begin(store, SIZE)
    await note(store, group)
    for _ in range(3):
        await duty.run()
    assert await statuses(store, group) == [Status.CANCELLED] * SIZE
    assert await status_of(store, group) is Status.CANCELLED
    assert duty.counted == [(group, "group")]


async def test_an_end_that_a_producer_makes_is_counted(store: Store, duty: Duty) -> None:
    group = await begin(store, SIZE)
    await note(store, group)
    assert await cancel_if_late(store, group)
    await duty.run()
    assert duty.counted == [(group, "group")]


async def test_an_end_is_recorded_before_the_members_are_cancelled(
    store: Store, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members of a large group take a minute, in which the caller may be killed."""
    group = await begin(store, SIZE)

    async def die(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("windlass.client.verbs.flows.cancel_members", die)
    with pytest.raises(KeyboardInterrupt):
        await cancel(store, group)
    for _ in range(2):
        await duty.run()
    assert duty.counted == [(group, "group")]
    assert await statuses(store, group) == [Status.CANCELLED] * SIZE


async def test_a_completed_group_is_not_cancelled(store: Store, clock: ManualClock, duty: Duty) -> None:
    group = await begin(store, 2, open=True)
    await store.operator.run_now([group])
    await end_all(store)
    await cancel(store, group)
    assert await cancel_that_holds(store, group) is None
    await duty.run()
    assert not await is_watched(store, group, clock)
    assert duty.counted == []


async def test_jobs_that_a_retry_revives_while_late_ones_are_searched_are_not_cancelled(
    store: Store, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator has read that the group is cancelled; then the group is retried."""
    group = await begin(store, SIZE)
    await cancel(store, group)
    late_among = cancelling.late_among

    async def retried(*args: Any) -> Any:
        await retry_jobs(store, [member_id(group, 0)])
        return await late_among(*args)

    monkeypatch.setattr(cancelled, "late_among", retried)
    await duty.run()
    assert (await statuses(store, group))[:2] == [Status.PENDING, Status.CANCELLED]


async def test_a_retry_of_a_live_job_does_not_end_the_cancel_of_its_group(store: Store) -> None:
    group = await begin(store, 2)
    await claim_all(store)
    await cancel(store, group)
    await retry_jobs(store, [member_id(group, 0)])
    assert await cancel_that_holds(store, group) is not None


async def test_a_document_that_cannot_be_read_does_not_hold_up_others(store: Store, duty: Duty) -> None:
    await store.documents.add(KIND, named_group_id("edited"), '{"by": "hand"}')
    group = await begin(store, 2)
    await cancel(store, group)
    await store_members(store, group, [2])
    await duty.run()
    assert (await statuses(store, group))[2] is Status.CANCELLED


async def test_a_turn_that_takes_long_goes_on_behind_the_last_flow(
    store: Store, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancels, "BUDGET_SECONDS", -1.0)
    groups = [await begin(store, 1) for _ in range(3)]
    for group in groups:
        await cancel(store, group)
        await store_members(store, group, range(1, SIZE))
    assert [await duty.run() for _ in range(2)] == [cancels.NEXT_SECONDS] * 2
    late = [(await statuses(store, group))[1] for group in sorted(groups)]
    assert late == [Status.PENDING, Status.CANCELLED, Status.CANCELLED]
    assert await duty.run() == cancels.NEXT_SECONDS
    assert [await statuses(store, group) for group in groups] == [[Status.CANCELLED] * SIZE] * 3


async def test_members_of_a_producer_that_stood_still_until_the_document_was_dropped_are_cancelled(
    store: Store, clock: ManualClock, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancels, "QUIET_SECONDS", 0.0)
    group = await begin(store, 2, open=True)
    await open_group(store, group)
    await cancel(store, group)
    await close_group(store, group)
    clock.advance(cancels.LATE + LONG)
    await duty.run()
    assert not await is_watched(store, group, clock)
    late = [new_job(id=member_id(group, i), parent=group) for i in range(2, SIZE)]
    await store.jobs.enqueue(late)
    assert not await cancel_if_late(store, group)
    assert not await cancel_if_left(store, group, 2, [])
    assert await cancel_if_left(store, group, SIZE, late)
    assert await statuses(store, group) == [Status.CANCELLED] * SIZE


@pytest.mark.parametrize("asked", [True, False])
async def test_a_group_that_is_cancelled_during_its_look_is_counted_once(
    store: Store, duty: Duty, asked: bool
) -> None:
    """The store cancels a job that was asked to stop and would run again; the runner only knows that it would."""
    group = await begin(store, 1)
    await store.operator.run_now([group])
    look = (await claim_all(store))[group]
    if asked:
        await cancel(store, group)
    await end(store, snoozed(look))
    if not asked:
        await cancel(store, group)
    assert await status_of(store, group) is Status.CANCELLED
    heard: list[Event] = []
    ends = GroupEnds(store.operator, heard.append)
    ends.note_settled([(look, Status.SCHEDULED)], [Settled.SETTLED])
    await ends.check()
    await duty.run()
    counted = [event for event in (*heard, *duty.heard) if isinstance(event, FlowEnded)]
    assert [(event.flow, event.status) for event in counted] == [(group, Status.CANCELLED)]
