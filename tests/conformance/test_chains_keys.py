"""Chains whose links have idempotency keys: those behind a link wait for the job that stands in its place."""

from tests.support.chains import after, end_next, follow_on, given, hand_in, statuses, take_one
from tests.support.seed import completed, dead, enqueue_one, look, new_job, status_of
from windlass.core.ids import new_id
from windlass.core.status import Status
from windlass.store.contract import Store

BLOCKED, PENDING, COMPLETED, CANCELLED = Status.BLOCKED, Status.PENDING, Status.COMPLETED, Status.CANCELLED


async def test_a_link_whose_key_was_taken_meanwhile_stays_cancelled_with_those_behind_it(store: Store) -> None:
    ids = await hand_in(store, follow_on([new_job(), new_job(idempotency_key="k"), new_job()]))
    await end_next(store, dead)
    await enqueue_one(store, idempotency_key="k", type="other")
    await store.operator.retry([ids[0]])
    assert await statuses(store, ids) == [PENDING, CANCELLED, CANCELLED]


async def test_a_revived_link_has_its_key_again(store: Store) -> None:
    ids = await hand_in(store, follow_on([new_job(), new_job(idempotency_key="k")]))
    await end_next(store, dead)
    await store.operator.retry([ids[0]])
    assert await enqueue_one(store, idempotency_key="k", type="other") == ids[1]


async def test_a_child_of_one_whose_key_another_has_waits_for_that_one(store: Store) -> None:
    stands = await enqueue_one(store, idempotency_key="k")
    first, second = follow_on([new_job(idempotency_key="k"), new_job()])
    assert await hand_in(store, [first, second]) == [stands, second.id]
    assert (await look(store, second.id)).parents == (stands,)
    await end_next(store, lambda job: completed(job, '"its"'))
    assert given(await take_one(store)) == '"its"'


async def test_those_behind_a_link_whose_key_another_has_wait_for_that_one(store: Store) -> None:
    stands = await enqueue_one(store, idempotency_key="k", queue="other")
    first, second, third = follow_on([new_job(), new_job(idempotency_key="k", queue="other"), new_job(queue="third")])
    assert await hand_in(store, [first, second, third]) == [first.id, stands, third.id]
    await end_next(store, completed)
    assert await status_of(store, third.id) is BLOCKED
    await end_next(store, lambda job: completed(job, '"its"'), runner="r2", queues=("other",))
    assert given(await take_one(store, runner="r3", queues=("third",))) == '"its"'


async def test_those_behind_a_link_whose_key_one_before_it_takes_wait_for_that_one(store: Store) -> None:
    first = new_job(idempotency_key="k")
    second, third = follow_on([new_job(idempotency_key="k"), new_job()])
    assert await hand_in(store, [first, second, third]) == [first.id, first.id, third.id]
    assert (await look(store, third.id)).parents == (first.id,)


async def test_a_link_whose_key_another_has_is_answered_with_that_one_whatever_its_parents_are(store: Store) -> None:
    stands = await enqueue_one(store, idempotency_key="k")
    job = new_job()
    assert await hand_in(store, [job, after(new_job(idempotency_key="k"), new_id())]) == [job.id, stands]
