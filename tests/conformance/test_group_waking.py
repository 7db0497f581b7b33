"""Ends that no runner wrote wake the group at once: of members that expired, were cancelled, or lost their runner."""

from typing import Any

from tests.conformance.test_groups import QUEUES, claim_all, end, enqueue_group
from tests.support.clock import ManualClock
from tests.support.seed import completed, enqueue, new_job, open_lease, request, running, status_of
from windlass.client.groups import waking
from windlass.client.groups.ends import GroupEnds
from windlass.coordinator import duties
from windlass.core.events import Event
from windlass.core.graphs.ids import FLOW_TYPE
from windlass.core.groups.ids import GROUP_TYPE, Role, callback_id, member_id, new_group_id, watcher_id
from windlass.core.jobs.job import NewJob
from windlass.core.log_events import FlowEnded
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import RunnerEnd


def silent(event: object) -> None:
    """Nothing is told."""


async def test_the_last_member_that_expires_wakes_its_group(store: Store, clock: ManualClock) -> None:
    groups = [new_group_id(), new_group_id()]
    for group, type_ in zip(groups, (GROUP_TYPE, FLOW_TYPE), strict=True):
        await store.jobs.enqueue(
            [
                NewJob(id=group, type=type_, payload="{}", delay=3600 * SECOND, queue="q0"),
                *(new_job(id=member_id(group, i), parent=group, queue="q1", expires=SECOND) for i in range(3)),
            ]
        )
    clock.advance(2 * SECOND)
    await duties.expire(store, silent)
    assert [await status_of(store, group) for group in groups] == [Status.PENDING] * 2


async def test_a_member_that_dies_with_its_runner_wakes_its_group(store: Store) -> None:
    group = await enqueue_group(store, 2)
    jobs = await claim_all(store)
    await end(store, completed(jobs[member_id(group, 0)]))
    job, runner = jobs[member_id(group, 1)], "r1"
    for attempt in range(1, 4):
        assert await status_of(store, group) is Status.SCHEDULED
        started = frozenset({(job.id, job.attempt)})
        rescued = await store.leases.end(RunnerEnd(runner=runner, started=started, crashed=True))
        await duties.report_rescued(store, rescued, silent)
        if attempt < 3:
            runner = await open_lease(store, f"r{attempt + 1}")
            (job,) = await store.jobs.claim(request(runner, queues=QUEUES, types=("t",)))
    assert await status_of(store, member_id(group, 1)) is Status.DEAD
    assert await status_of(store, group) is Status.PENDING


async def test_the_end_of_a_flow_that_dies_with_its_runner_is_emitted(store: Store) -> None:
    group = new_group_id()
    job = await running(store, id=group, type=GROUP_TYPE, flow=group, max_attempts=1)
    ended = RunnerEnd(runner="r1", started=frozenset({(group, job.attempt)}), crashed=True)
    heard: list[Event] = []
    await duties.report_rescued(store, await store.leases.end(ended), heard.append)
    flows = [event for event in heard if isinstance(event, FlowEnded)]
    assert [(event.flow, event.status) for event in flows] == [(group, Status.DEAD)]


async def test_an_outcome_of_a_flow_that_the_store_refuses_is_not_emitted(store: Store) -> None:
    group, heard = new_group_id(), list[Event]()
    job = await running(store, id=group, type=GROUP_TYPE, flow=group)
    ends = GroupEnds(store.operator, heard.append)
    await store.leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=False))
    ends.note_settled([(job, Status.COMPLETED)], await store.jobs.settle([completed(job)]))
    assert heard == []


async def test_a_cancelled_member_wakes_its_group(store: Store) -> None:
    group = await enqueue_group(store, 3)
    await waking.cancel_jobs(store.operator, [member_id(group, i) for i in range(2)], "not needed")
    assert await status_of(store, group) is Status.PENDING


class Selects:
    """Verbs of a store; notes after which id each list of ids begins."""

    def __init__(self, operator: Any) -> None:
        self.cancel, self.get, self.run_now = operator.cancel, operator.get, operator.run_now
        self._select = operator.select
        self.begun: list[str] = []

    async def select(self, wanted: object, limit: int, after: str) -> list[str]:
        self.begun.append(after)
        found: list[str] = await self._select(wanted, limit, after)
        return found


async def test_members_before_cancelled_ones_are_not_read_again_for_each_page(store: Store) -> None:
    group = await enqueue_group(store, 5)
    operator: Any = Selects(store.operator)
    for page in (0, 1), (2, 3):
        await waking.cancel_jobs(operator, [member_id(group, i) for i in page], "not needed")
    assert operator.begun == [member_id(group, 1), member_id(group, 3)]


async def test_the_end_of_a_callback_is_no_reason_to_read_its_group(store: Store) -> None:
    group, ends = new_group_id(), GroupEnds(store.operator)
    ids = [callback_id(group, Role.THEN), watcher_id(group, Role.ON_DEAD)]
    for runner, id_ in zip(("r1", "r2"), ids, strict=True):
        job = await running(store, runner, id=id_, flow=group)
        ends.note([(job, Status.CANCELLED)])
    assert ends.idle


class Refused:
    """Verbs of a store, of which only one may be called."""

    def __init__(self, operator: Any) -> None:
        self.cancel = operator.cancel


async def test_for_jobs_of_no_group_nothing_is_read(store: Store) -> None:
    ids = await enqueue(store, 3)
    operator: Any = Refused(store.operator)
    moved = await waking.cancel_jobs(operator, ids, "not needed")
    assert [each and each.status for each in moved] == [Status.CANCELLED] * 3
