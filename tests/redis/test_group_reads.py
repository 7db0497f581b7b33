"""What a look of a group at its members reads on Redis: each member once, and no more than its page."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conformance.test_groups import enqueue_group
from tests.support.seed import completed, dead, enqueue, new_job, open_lease, request
from windlass.client.graphs.members import member_ids
from windlass.client.groups import members
from windlass.client.groups.look import Known, Look, Seen
from windlass.client.groups.members import first_live, first_lost
from windlass.core.groups.ids import Role, callback_id, member_id
from windlass.core.groups.rules import GroupPayload
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import JobFilter
from windlass.store.redis.connection.access import Access

SIZE, PAGE, OTHERS = 600, 200, 300
QUEUES = ("q0", "q1", "q2")


class Reads:
    """Counts the jobs that lists look at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs = 0
        call_queues = Access.call_queues

        async def counted(access: Access, name: str, requests: Mapping[str, Any]) -> Any:
            replies = await call_queues(access, name, requests)
            if name == "list_ids":
                self.jobs += sum(seen for _, seen, *_ in replies.values())
            return replies

        monkeypatch.setattr(Access, "call_queues", counted)
        monkeypatch.setattr(members, "PAGE", PAGE)

    def taken(self) -> int:
        """Since the last call."""
        jobs, self.jobs = self.jobs, 0
        return jobs


async def complete(store: Store, claim: int, jobs: int) -> None:
    """The first so many of each queue."""
    found = [
        job
        for queue in QUEUES
        for job in await store.jobs.claim(
            request(claim=claim + QUEUES.index(queue), queues=(queue,), types=("t",), limit=jobs // 3)
        )
    ]
    assert len(found) == jobs
    await store.jobs.settle([completed(job) for job in found])


async def look(store: Store, group: JobId, known: Known) -> Seen:
    return await Look(store, GroupPayload(group, SIZE), None, 0).run(known)


async def test_looks_read_each_member_once_and_no_more_than_their_page(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(monkeypatch)
    group = await enqueue_group(store, SIZE)
    for queue in QUEUES:  # with so many others, live jobs are not looked up one by one
        await enqueue(store, OTHERS, queue=queue, type="other")
    await open_lease(store)
    seen = await look(store, group, Known())
    assert (seen.known.done, reads.taken()) == (0, 0), "none has completed"
    await complete(store, 1, 300)
    seen = await look(store, group, seen.known)
    # More than a page is counted, one page is read; behind the live member lost ones are looked for among few.
    assert (seen.known.done, reads.taken()) == (300, PAGE)
    await complete(store, 10, 300)
    seen = await look(store, group, seen.known)
    assert (seen.ended, seen.known.done) == (True, SIZE)
    # Half of them in the walk, and the others because they may be live again; the callback is a child too.
    assert reads.taken() <= SIZE + 4


async def test_where_few_jobs_are_live_or_lost_ended_members_are_not_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(monkeypatch)
    group = await enqueue_group(store, SIZE)
    await open_lease(store)
    for claim in (1, 10):
        await complete(store, claim, SIZE // 2)
    await store.jobs.enqueue([new_job(parent=(await enqueue(store, 1, queue="q0"))[0], queue="q0")])
    await store.operator.cancel([callback_id(group, Role.THEN)], "not needed")  # else one is blocked
    assert await first_live(store.operator, group) is None
    assert await first_lost(store.operator, group) is None
    assert reads.taken() <= 10
    await store.operator.retry([member_id(group, 7)])
    assert await first_live(store.operator, group) == member_id(group, 7)
    await store.operator.cancel([member_id(group, 7)], "not needed")
    found = await first_lost(store.operator, group)
    assert found is not None
    assert str(Status.CANCELLED) in found
    assert reads.taken() <= 10


@pytest.mark.parametrize("others", [0, OTHERS])
async def test_members_are_found_by_any_status_beside_few_and_many_lost_jobs(store: Store, others: int) -> None:
    group, lost = await enqueue_group(store, 30), await enqueue(store, others, queue="q0", type="other")
    await store.operator.cancel(lost, "not needed")
    await open_lease(store)
    claimed = {
        job.id: job
        for queue in QUEUES
        for job in await store.jobs.claim(request(claim=QUEUES.index(queue), queues=(queue,), types=("t",), limit=9))
    }
    ends = [dead(job) if i % 4 == 0 else completed(job) for i, job in enumerate(claimed.values()) if i % 5]
    await store.jobs.settle(ends)
    await store.operator.cancel([member_id(group, 28)], "not needed")
    found = await store.operator.get([member_id(group, i) for i in range(30)])
    status = {job.id: job.status for job in found if job is not None}
    assert len(set(status.values())) == 5, "completed, dead, cancelled, running and pending ones"
    ended = (Status.COMPLETED, Status.DEAD, Status.CANCELLED)
    live = tuple(set(Status) - set(ended))
    for wanted in (ended[:1], ended[1:], ended[:2], ended, live, (Status.RUNNING,), (Status.DEAD, Status.PENDING)):
        ids = await store.operator.select(JobFilter(parent=group, status=wanted), 100, None)
        assert [id_ for id_ in ids if id_ in status] == [id_ for id_ in sorted(status) if status[id_] in wanted]


async def test_ended_nodes_are_counted_in_one_walk_along_a_graph(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = await enqueue_group(store, SIZE)
    await open_lease(store)
    await complete(store, 1, 300)
    reads = Reads(monkeypatch)
    ended = [id_ async for ids in member_ids(store.operator, flow, (Status.COMPLETED,)) for id_ in ids]
    assert len(ended) == 300
    assert reads.taken() <= SIZE + 1, "the callback is a child too"
