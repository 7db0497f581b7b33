"""The coordinator finishes large cancels in bounded turns, and cancels nothing that a retry has revived meanwhile."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.conformance.test_cancelled_flows import flow_with_group, note
from tests.conformance.test_late_members import SIZE, Duty, begin, statuses
from tests.support.clock import ManualClock
from tests.support.seed import new_job, status_of
from windlass.client.graphs import verbs
from windlass.client.graphs.verbs import retry_graph
from windlass.client.groups import cancelled
from windlass.client.groups.cancelled import Cancellation, cancel_that_holds, let_retried_run, retry_jobs
from windlass.client.verbs.flows import cancel_flow
from windlass.coordinator import cancels
from windlass.core.graphs.ids import FLOW_TYPE, node_id
from windlass.core.groups.ids import GROUP_TYPE, Role, member_id, new_group_id, watcher_id
from windlass.core.ids import JobId
from windlass.core.jobs.job import NewJob
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store


@pytest.fixture
def duty(store: Store, monkeypatch: pytest.MonkeyPatch) -> Duty:
    monkeypatch.setattr(cancels, "BUDGET_SECONDS", 60.0)
    return Duty(store)


async def graph(store: Store, nodes: int) -> JobId:
    flow = new_group_id()
    payload = f'{{"flow": "{flow}", "nodes": {nodes}, "jobs": {nodes}}}'
    await store.jobs.enqueue(
        [NewJob(id=flow, type=FLOW_TYPE, payload=payload, delay=60 * SECOND, queue="q0", flow=flow)]
    )
    jobs = [new_job(id=node_id(flow, number), parent=flow, flow=flow, queue="q1") for number in range(nodes)]
    await store.jobs.enqueue(jobs)
    return flow


async def cancel_and_retry(store: Store, clock: ManualClock, flow: JobId) -> None:
    """An operator cancels the flow, and retries it at once."""
    (job,) = await store.operator.get([flow])
    assert job is not None
    await cancel_flow(store, job, "not needed")
    clock.advance(1)
    (job,) = await store.operator.get([flow])
    assert job is not None
    await let_retried_run(store, [job])
    if job.type == FLOW_TYPE:
        await retry_graph(store, job)
    else:
        await retry_jobs(store, [flow, *(member_id(flow, index) for index in range(SIZE))])


def after_reading(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Awaitable[None]], *modules: Any) -> None:
    """Act once, after the coordinator has read that a cancel holds, and before it cancels what it found."""
    acted: list[bool] = []

    async def read(*args: Any) -> Cancellation | None:
        found = await cancel_that_holds(*args)
        if not acted:
            acted.append(True)
            await act()
        return found

    for module in modules:
        monkeypatch.setattr(module, "cancel_that_holds", read)


async def test_members_of_a_large_group_are_cancelled_in_several_turns(
    store: Store, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its canceller was killed, or is slower; leases, schedules and other duties do not wait for all of them."""
    monkeypatch.setattr(cancels, "BUDGET_SECONDS", -1.0)
    monkeypatch.setattr(cancelled, "BATCH", 2)
    group = await begin(store, SIZE)
    always = watcher_id(group, Role.ALWAYS)
    await store.jobs.enqueue(
        [NewJob(id=always, type=GROUP_TYPE, payload="{}", delay=60 * SECOND, queue="q0", flow=group)]
    )
    await note(store, group)
    for left in (3, 1, 0):
        assert await duty.run() == cancels.NEXT_SECONDS
        assert await statuses(store, group) == [Status.CANCELLED] * (SIZE - left) + [Status.PENDING] * left
    await duty.run()
    assert await status_of(store, always) is Status.PENDING
    assert duty.counted == [(group, "group")]


async def test_a_member_that_comes_before_the_place_of_a_turn_is_found_by_a_later_one(
    store: Store, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancels, "BUDGET_SECONDS", -1.0)
    monkeypatch.setattr(cancelled, "BATCH", 2)
    group = await begin(store, 0)
    await store.jobs.enqueue([new_job(id=member_id(group, i), parent=group) for i in (1, 2, 3, 4)])
    await note(store, group)
    await duty.run()
    await store.jobs.enqueue([new_job(id=member_id(group, 0), parent=group)])
    for _ in range(3):
        await duty.run()
    assert await statuses(store, group) == [Status.CANCELLED] * SIZE


async def test_nodes_and_groups_of_a_graph_are_cancelled_in_several_turns(
    store: Store, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancels, "BUDGET_SECONDS", -1.0)
    monkeypatch.setattr(verbs, "PAGE", 2)
    flow, group, late = await flow_with_group(store)
    more = [new_job(id=node_id(flow, number), parent=flow, flow=flow) for number in range(1, 5)]
    await store.jobs.enqueue([*late, *more])
    await note(store, flow)
    await duty.run()
    found = [await status_of(store, job.id) for job in more]
    assert found == [Status.PENDING] * 2 + [Status.CANCELLED] * 2
    for _ in range(8):
        await duty.run()
    assert {await status_of(store, job.id) for job in (*late, *more)} == {Status.CANCELLED}
    assert sorted(duty.counted) == sorted([(flow, "graph"), (group, "group")])


async def test_a_group_that_is_cancelled_and_retried_before_the_late_ones_are_cancelled_runs(
    store: Store, clock: ManualClock, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = await begin(store, SIZE)
    await note(store, group)
    after_reading(monkeypatch, lambda: cancel_and_retry(store, clock, group), cancelled)
    for _ in range(2):
        await duty.run()
    assert await statuses(store, group) == [Status.PENDING] * SIZE
    assert await status_of(store, group) is Status.PENDING


async def test_a_graph_that_is_cancelled_and_retried_before_the_late_ones_are_cancelled_runs(
    store: Store, clock: ManualClock, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = await graph(store, SIZE)
    await note(store, flow)
    after_reading(monkeypatch, lambda: cancel_and_retry(store, clock, flow), cancelled, verbs)
    for _ in range(2):
        await duty.run()
    assert [await status_of(store, node_id(flow, number)) for number in range(SIZE)] == [Status.PENDING] * SIZE


async def test_a_group_within_a_graph_that_is_retried_while_its_cancel_is_recorded_runs(
    store: Store, clock: ManualClock, duty: Duty, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, group, late = await flow_with_group(store)
    await store.jobs.enqueue(late)
    await note(store, flow)
    await store.operator.cancel([node_id(flow, 0), flow], "not needed")
    after_reading(monkeypatch, lambda: cancel_and_retry(store, clock, flow), verbs)
    for _ in range(3):
        await duty.run()
    assert Status.CANCELLED not in [await status_of(store, job.id) for job in late]
    assert await cancel_that_holds(store, group) is None
