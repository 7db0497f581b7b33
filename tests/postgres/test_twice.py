"""An id enqueued twice where neither could see the other: it is found out later, and no other job suffers."""

import asyncio

import pytest

from tests.postgres.other import Other
from tests.support.clock import ManualClock
from tests.support.seed import claim_one, completed, new_job, open_lease, put, request, running, settle
from windlass.core.flow.queue import QueueSettings
from windlass.core.ids import JobId
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.moments import DAY
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.keys import KeyConflicts, KeyRef
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.verbs import enqueue as enqueueing
from windlass.store.records import Settled


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_job_that_is_in_history_already_keeps_no_other_from_being_settled(
    store: Store, key: str | None
) -> None:
    twice, other = new_job(fresh="here", idempotency_key=key), new_job(fresh="here")
    await open_lease(store)
    await store.jobs.enqueue([twice])
    await settle(store, completed(await claim_one(store), '"first"'))
    assert await store.jobs.enqueue([twice]) == [Enqueued(twice.id)], "it says that it is fresh, and is believed"
    await store.jobs.enqueue([other])
    jobs = await store.jobs.claim(request(limit=10))
    while len(jobs) < 2:
        # Its id is not above the last one claimed: it is found by a claim that begins at the watermark again.
        jobs += await store.jobs.claim(request(limit=10))
    assert {job.id for job in jobs} == {twice.id, other.id}
    answers = await store.jobs.settle([completed(job) for job in jobs])
    assert dict(zip([job.id for job in jobs], answers, strict=True)) == {
        twice.id: Settled.ALREADY,
        other.id: Settled.SETTLED,
    }
    totals = (await store.operator.counts()).totals
    assert (totals["running"], totals["completed"]) == (0, 2)
    new = new_job(idempotency_key="k")
    assert await store.jobs.enqueue([new]) == [Enqueued(new.id)], "the key is free"


async def test_a_key_that_was_taken_for_a_job_that_has_ended_meanwhile_is_free(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await running(store, idempotency_key="k")
    conflicts = enqueueing._key_conflicts

    async def look_too_early(db: Db, jobs: object) -> set[str]:
        return set()

    async def settle_first(db: Db, jobs: list[NewJob]) -> tuple[KeyConflicts, dict[KeyRef, JobId]]:
        await settle(store, completed(job))
        return await conflicts(db, jobs)

    monkeypatch.setattr(enqueueing, "_existing", look_too_early)
    monkeypatch.setattr(enqueueing, "_key_conflicts", settle_first)
    again = new_job(id=job.id, idempotency_key="k")
    assert await store.jobs.enqueue([again]) == [Enqueued(job.id, existing=True)]
    monkeypatch.undo()
    new = new_job(idempotency_key="k")
    assert await store.jobs.enqueue([new]) == [Enqueued(new.id)]


async def test_an_enqueue_repeated_too_late_replaces_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await put(store, Status.COMPLETED)
    existing_job = new_job(idempotency_key="k")
    await store.jobs.enqueue([existing_job])

    async def look_too_early(db: Db, jobs: object) -> set[str]:
        return set()

    monkeypatch.setattr(enqueueing, "_existing", look_too_early)
    again = new_job(id=ended, idempotency_key="k", on_conflict=OnConflict.REPLACE)
    assert await store.jobs.enqueue([again]) == [Enqueued(ended, existing=True)]
    monkeypatch.undo()
    assert await store.jobs.enqueue([new_job(idempotency_key="k")]) == [Enqueued(existing_job.id, existing=True)]
    (job,) = await store.operator.get([existing_job.id])
    assert job is not None
    assert job.status is Status.PENDING


async def test_ids_that_are_remembered_while_a_partition_is_about_to_be_emptied_are_not_forgotten(
    store: Store, clock: ManualClock, other: Other
) -> None:
    await store.queues.change("default", QueueSettings(retention={Status.COMPLETED: 0}))
    await put(store, Status.COMPLETED)
    clock.advance(2 * DAY)
    # The next day begins, by the clock of the server, while a pruner that has just looked waits for the partition.
    new = new_job()
    until = clock.wall() + DAY
    copy = "INSERT INTO windlass.tombstones SELECT %s, partition, 1, 'completed', %s FROM windlass.tombstones"
    await other.does(copy, new.id, until)
    pruning = asyncio.create_task(store.operator.prune(10))
    waiting = asyncio.create_task(other.is_waited_for())
    await asyncio.wait([pruning, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    await other.commits()
    await pruning
    assert await store.jobs.enqueue([new]) == [Enqueued(new.id, existing=True)]


async def test_a_settlement_and_a_session_that_locks_in_order_do_not_deadlock(store: Store, other: Other) -> None:
    low, high = sorted([await running(store), await running(store)], key=lambda job: job.id)
    await other.does("SELECT 1 FROM windlass.jobs WHERE id = %s FOR UPDATE", low.id)
    settling = asyncio.create_task(store.jobs.settle([completed(high), completed(low)]))
    await other.is_waited_for()
    # At once, or the other one waits for this one already.
    await other.does("SELECT 1 FROM windlass.jobs WHERE id = %s FOR UPDATE NOWAIT", high.id)
    await other.commits()
    assert await settling == [Settled.SETTLED] * 2
