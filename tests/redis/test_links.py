"""Links over queues, in steps: whatever dies on the way, each child is released once, and none is left waiting."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.redis.deaths import Step, be_left_alone, dying_at, nothing_left, shown, steps, winding
from tests.support.chains import after, chain, enqueue_jobs, follow_on, given, statuses, take_one
from tests.support.clock import ManualClock
from tests.support.seed import completed, dead, enqueue_one, look, new_job, settle, status_of
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import Claimed, NewJob
from windlass.core.jobs.outcome import Settlement
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.dependencies import parents as links
from windlass.store.redis.operator import operator_verbs as waiting
from windlass.store.redis.operator.decide import Decided, replace_decided
from windlass.store.redis.operator.replace import Replaced
from windlass.store.redis.store import RedisStore
from windlass.store.redis.verbs import enqueue

BLOCKED, PENDING, COMPLETED, CANCELLED = Status.BLOCKED, Status.PENDING, Status.COMPLETED, Status.CANCELLED


@pytest.mark.parametrize("step", steps("parent_checks", "register_children", "deliver_mail"), ids=shown)
@pytest.mark.parametrize("ending", [completed, dead, None])
async def test_a_child_whose_producer_dies_finds_its_parent_in_another_queue(
    store: RedisStore, clock: ManualClock, step: Step, ending: Callable[[Claimed], Settlement] | None
) -> None:
    (parent,) = await enqueue_jobs(store, [new_job()])
    running = await take_one(store)
    child = after(new_job(queue="other"), parent)
    with dying_at(step):
        await enqueue_jobs(store, [child])
    if ending is not None:
        await settle(store, ending(running))
    await be_left_alone(store, clock)
    expected = BLOCKED if ending is None else PENDING if ending is completed else CANCELLED
    assert await status_of(store, child.id) is expected
    if ending is None:
        await settle(store, completed(running))
        assert given(await take_one(store, queues=("other",))) == "1"
    assert await nothing_left(store)


async def test_a_producer_that_enqueues_again_after_it_died_finishes_nothing_twice(
    store: RedisStore, clock: ManualClock
) -> None:
    (parent,) = await enqueue_jobs(store, [new_job()])
    child = after(new_job(queue="other"), parent)
    with dying_at(("register_children", False)):
        await enqueue_jobs(store, [child])
    assert await enqueue_jobs(store, [child]) == [child.id]
    await be_left_alone(store, clock)
    await settle(store, completed(await take_one(store)))
    assert given(await take_one(store, queues=("other",))) == "1"


@pytest.mark.parametrize("step", [("complete", True), *steps("deliver_mail", "clear_mail")], ids=shown)
async def test_what_a_dead_worker_did_not_deliver_comes_all_the_same_and_once(
    store: RedisStore, clock: ManualClock, step: Step
) -> None:
    first, second = new_job(), new_job(queue="third")
    child = new_job(queue="other", parents=(first.id, second.id), result_params=(("x", first.id),))
    await enqueue_jobs(store, [first, second, child])
    job = await take_one(store)
    with dying_at(step):
        await settle(store, completed(job, '"one"'))
    await be_left_alone(store, clock)
    await be_left_alone(store, clock)
    assert await status_of(store, child.id) is BLOCKED, "one parent counts once"
    await settle(store, completed(await take_one(store, runner="r2", queues=("third",)), '"two"'))
    found = await take_one(store, runner="r3", queues=("other",))
    assert found.parent_results is not None
    assert found.parent_results.count(first.id) == 1
    assert await nothing_left(store)


@pytest.mark.parametrize(
    "step", [("replace_records", True), *steps("notify_dependents", "deliver_mail", "clear_mail")], ids=shown
)
async def test_a_chain_is_cancelled_to_its_end_though_the_process_that_ended_its_parent_dies(
    store: RedisStore, clock: ManualClock, step: Step
) -> None:
    ids = await enqueue_jobs(store, winding())
    job = await take_one(store)
    with dying_at(step):
        await settle(store, dead(job))
    await be_left_alone(store, clock)
    assert await statuses(store, ids) == [Status.DEAD, *[CANCELLED] * 4]
    assert await nothing_left(store)


@pytest.mark.parametrize(
    "step",
    [("replace_records", True), *steps("notify_dependents", "deliver_mail", "clear_mail", "register_children")],
    ids=shown,
)
async def test_a_chain_is_retried_to_its_end_though_the_process_that_retried_it_dies(
    store: RedisStore, clock: ManualClock, step: Step
) -> None:
    ids = await enqueue_jobs(store, winding())
    await settle(store, dead(await take_one(store)))
    with dying_at(step):
        await store.operator.retry(ids[:1])
    await be_left_alone(store, clock)
    await be_left_alone(store, clock)
    assert await statuses(store, ids) == [PENDING, *[BLOCKED] * 4]
    assert await nothing_left(store)


async def test_a_long_chain_that_falls_goes_on_from_where_it_stood(store: RedisStore, clock: ManualClock) -> None:
    ids = await chain(store, 500)
    job = await take_one(store)
    original, calls = Access.call_queues, 0

    async def some(self: Access, wanted: str, requests: Mapping[str, Any]) -> Any:
        nonlocal calls
        calls += wanted == "notify_dependents"
        if calls == 3:
            raise StoreUnavailable("it is dead")
        return await original(self, wanted, requests)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Access, "call_queues", some)
        with pytest.raises(StoreUnavailable):
            await settle(store, dead(job))
    counts = (await store.operator.counts()).queues["default"]
    assert 0 < counts["blocked"] < 499, "each call does a part"
    await store.tidy()
    assert set(await statuses(store, ids[1:])) == {CANCELLED}


@pytest.mark.parametrize("which", [0, 1])
async def test_links_that_are_moved_find_each_other(store: RedisStore, which: int) -> None:
    ids = await chain(store, 2)
    await store.operator.change([ids[which]], JobChange(queue="there"))
    await settle(store, completed(await take_one(store, queues=("default", "there"))))
    assert given(await take_one(store, runner="r2", queues=("default", "there"))) == "1"
    assert await nothing_left(store)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("step", [("move_done", True), *steps("notify_dependents", "register_children")], ids=shown)
async def test_links_find_each_other_though_the_process_that_moved_one_dies(
    store: RedisStore, clock: ManualClock, which: int, step: Step
) -> None:
    if which == 1 and step[0] == "notify_dependents":
        step = ("parent_checks", step[1])  # a child asks, and has no other job to notify
    ids = await chain(store, 2)
    with dying_at(step):
        await store.operator.change([ids[which]], JobChange(queue="there"))
    await settle(store, completed(await take_one(store, queues=("default", "there"))))
    await be_left_alone(store, clock)
    assert given(await take_one(store, runner="r2", queues=("default", "there"))) == "1"


async def test_a_link_is_shown_with_what_its_parents_do(store: RedisStore) -> None:
    first, second = follow_on([new_job(), new_job(queue="other")])
    await enqueue_jobs(store, [first, second])
    facts = await store.operator.why_facts(second.id)
    assert facts is not None
    assert [(each.id, each.status) for each in facts.parents] == [(first.id, PENDING)]
    assert (await look(store, second.id)).parents == (first.id,)


async def test_a_link_that_is_retried_just_as_its_parent_dies_ends_with_it(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was seen that the parent lives, and then it did not."""
    ids = await chain(store, 2)
    job = await take_one(store)
    await store.operator.cancel(ids[1:], "no")
    original = replace_decided

    async def late(access: Access, decided: Decided) -> dict[JobId, Replaced]:
        await settle(store, dead(job))
        return await original(access, decided)

    monkeypatch.setattr(waiting, "replace_decided", late)
    await store.operator.retry(ids[1:])
    assert await statuses(store, ids) == [Status.DEAD, CANCELLED]


@pytest.mark.parametrize("queue", ["default", "other"])
async def test_a_key_that_is_taken_just_before_a_chain_comes_is_seen(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    """It was free when it was looked who stands: those behind that link wait for the job that has it now."""
    original, existing = links.with_checked_parents, list[JobId]()

    async def late(access: Access, jobs: list[NewJob]) -> Sequence[NewJob]:
        checked = await original(access, jobs)
        if not existing:
            existing.append(await enqueue_one(store, idempotency_key="k"))
        return checked

    monkeypatch.setattr(enqueue, "with_checked_parents", late)
    first, second, third = follow_on([new_job(queue=queue), new_job(idempotency_key="k"), new_job()])
    assert await enqueue_jobs(store, [first, second, third]) == [first.id, *existing, third.id]
    assert (await look(store, third.id)).parents == tuple(existing)
