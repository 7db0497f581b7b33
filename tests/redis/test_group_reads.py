"""What a look of a group at its members reads on Redis: each member once, and no more than its page."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conformance.test_groups import enqueue_group
from tests.support.seed import completed, enqueue, new_job, open_lease, request
from windlass.client.groups import members
from windlass.client.groups.look import Known, Look, Seen
from windlass.client.groups.members import first_live, first_lost
from windlass.core.groups.ids import Role, callback_id, member_id
from windlass.core.groups.rules import GroupPayload
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.contract import Store
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
    # Two pages; behind the first live member lost ones are looked for among few.
    assert (seen.known.done, reads.taken()) == (300, 2 * PAGE)
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
