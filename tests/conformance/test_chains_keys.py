"""Chains whose links have idempotency keys: those behind a link wait for the job that stands in its place."""

import pytest

from tests.support.chains import after, end_next, enqueue_jobs, follow_on, given, statuses, take_one
from tests.support.clock import ManualClock
from tests.support.seed import completed, dead, enqueue_one, look, new_job, status_of
from windlass.core.ids import JobId, new_id
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.moments import DAY
from windlass.core.status import Status
from windlass.store.contract import Store

BLOCKED, PENDING, COMPLETED, CANCELLED = Status.BLOCKED, Status.PENDING, Status.COMPLETED, Status.CANCELLED


async def test_a_link_whose_key_was_taken_meanwhile_stays_cancelled_with_those_behind_it(store: Store) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(idempotency_key="k"), new_job()]))
    await end_next(store, dead)
    await enqueue_one(store, idempotency_key="k", type="other")
    await store.operator.retry([ids[0]])
    assert await statuses(store, ids) == [PENDING, CANCELLED, CANCELLED]


async def test_a_revived_link_has_its_key_again(store: Store) -> None:
    ids = await enqueue_jobs(store, follow_on([new_job(), new_job(idempotency_key="k")]))
    await end_next(store, dead)
    await store.operator.retry([ids[0]])
    assert await enqueue_one(store, idempotency_key="k", type="other") == ids[1]


async def test_a_child_of_one_whose_key_another_has_waits_for_that_one(store: Store) -> None:
    existing = await enqueue_one(store, idempotency_key="k")
    first, second = follow_on([new_job(idempotency_key="k"), new_job()])
    assert await enqueue_jobs(store, [first, second]) == [existing, second.id]
    assert (await look(store, second.id)).parents == (existing,)
    await end_next(store, lambda job: completed(job, '"its"'))
    assert given(await take_one(store)) == '"its"'


async def test_those_behind_a_link_whose_key_another_has_wait_for_that_one(store: Store) -> None:
    existing = await enqueue_one(store, idempotency_key="k", queue="other")
    first, second, third = follow_on([new_job(), new_job(idempotency_key="k", queue="other"), new_job(queue="third")])
    assert await enqueue_jobs(store, [first, second, third]) == [first.id, existing, third.id]
    await end_next(store, completed)
    assert await status_of(store, third.id) is BLOCKED
    await end_next(store, lambda job: completed(job, '"its"'), runner="r2", queues=("other",))
    assert given(await take_one(store, runner="r3", queues=("third",))) == '"its"'


async def test_those_behind_a_link_whose_key_one_before_it_takes_wait_for_that_one(store: Store) -> None:
    first = new_job(idempotency_key="k")
    second, third = follow_on([new_job(idempotency_key="k"), new_job()])
    assert await enqueue_jobs(store, [first, second, third]) == [first.id, first.id, third.id]
    assert (await look(store, third.id)).parents == (first.id,)


async def test_a_link_whose_key_another_has_is_answered_with_that_one_whatever_its_parents_are(store: Store) -> None:
    existing = await enqueue_one(store, idempotency_key="k")
    job = new_job()
    assert await enqueue_jobs(store, [job, after(new_job(idempotency_key="k"), new_id())]) == [job.id, existing]


async def dead_parent(store: Store) -> JobId:
    parent = await enqueue_one(store, queue="parents")
    await end_next(store, dead, queues=("parents",))
    return parent


@pytest.mark.parametrize("queue", ["default", "parents"])
async def test_a_link_that_replaces_another_and_is_cancelled_at_once_frees_the_key(store: Store, queue: str) -> None:
    parent = await dead_parent(store)
    replaced = await enqueue_one(store, idempotency_key="k", queue=queue)
    link = new_job(idempotency_key="k", on_conflict=OnConflict.REPLACE, queue=queue)
    assert await enqueue_jobs(store, [after(link, parent)]) == [link.id]
    assert await statuses(store, [replaced, link.id]) == [CANCELLED, CANCELLED]
    new = await enqueue_one(store, idempotency_key="k", queue=queue)
    assert await status_of(store, new) is PENDING


async def test_a_link_with_a_window_that_is_cancelled_at_once_keeps_the_key_for_it(
    store: Store, clock: ManualClock
) -> None:
    parent = await dead_parent(store)
    await enqueue_one(store, idempotency_key="k")
    fields = {"idempotency_key": "k", "idempotency_window": DAY, "on_conflict": OnConflict.REPLACE}
    link = after(new_job(**fields), parent)
    await enqueue_jobs(store, [link])
    assert await enqueue_one(store, idempotency_key="k") == link.id
    clock.advance(DAY)
    assert await enqueue_one(store, idempotency_key="k") != link.id


async def test_a_link_behind_one_that_is_cancelled_at_once_frees_its_key_too(store: Store) -> None:
    parent = await dead_parent(store)
    await enqueue_one(store, idempotency_key="k")
    first = after(new_job(), parent)
    second = after(new_job(idempotency_key="k", on_conflict=OnConflict.REPLACE), first.id)
    assert await enqueue_jobs(store, [first, second]) == [first.id, second.id]
    assert await statuses(store, [first.id, second.id]) == [CANCELLED, CANCELLED]
    assert await status_of(store, await enqueue_one(store, idempotency_key="k")) is PENDING


async def test_a_link_whose_parent_is_replaced_along_with_it_frees_its_key(store: Store) -> None:
    """Its parent is cancelled by a job of the same call."""
    parent = await enqueue_one(store, idempotency_key="k")
    link = after(new_job(idempotency_key="l"), parent)
    replacing = new_job(idempotency_key="k", on_conflict=OnConflict.REPLACE)
    await enqueue_jobs(store, [link, replacing])
    assert await statuses(store, [parent, link.id, replacing.id]) == [CANCELLED, CANCELLED, PENDING]
    assert await status_of(store, await enqueue_one(store, idempotency_key="l")) is PENDING
