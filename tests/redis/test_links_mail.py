"""Mail between queues that comes late, twice or not at all, and parents that are not there."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.redis.deaths import be_left_alone, dying_at, nothing_left, wipe
from tests.support.chains import after, enqueue_jobs, follow_on, given, statuses, take_one
from tests.support.clock import ManualClock
from tests.support.key_queues import take
from tests.support.seed import completed, dead, new_job, settle, status_of
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.core.why.explain import explain
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.portion import MAX_TEXT
from windlass.store.redis.dependencies import dependents as dependents_module
from windlass.store.redis.dependencies import mail
from windlass.store.redis.dependencies import parent_checks as asking
from windlass.store.redis.operator import operator_verbs
from windlass.store.redis.operator.read_records import JobView, read_anywhere
from windlass.store.redis.records.keys import QUEUE_KEYS
from windlass.store.redis.store import RedisStore
from windlass.worker.supervisor.side_tasks import is_empty

BLOCKED, PENDING, COMPLETED, CANCELLED = Status.BLOCKED, Status.PENDING, Status.COMPLETED, Status.CANCELLED


async def test_a_worker_does_not_leave_a_child_that_was_not_notified_yet(
    store: RedisStore, clock: ManualClock
) -> None:
    """Nothing is pending or running then, and the chain is not at its end all the same."""
    await enqueue_jobs(store, follow_on([new_job(), new_job(queue="other")]))
    job = await take_one(store)
    assert not await is_empty(store, ["default", "other"])
    with dying_at(("complete", True)):
        await settle(store, completed(job))
    assert not await is_empty(store, ["default", "other"])
    await be_left_alone(store, clock)
    await settle(store, completed(await take_one(store, runner="r2", queues=("other",))))
    assert await is_empty(store, ["default", "other"])


async def test_a_worker_does_not_wait_long_for_a_child_whose_parent_is_unknown(
    store: RedisStore, clock: ManualClock
) -> None:
    first, second = follow_on([new_job(queue="other"), new_job()])
    with dying_at(("register_children", False)):
        await enqueue_jobs(store, [first, second])
    await wipe(store, "other")
    assert not await is_empty(store, ["default"])
    clock.advance(31 * SECOND)
    assert await is_empty(store, ["default"])


async def test_what_is_delivered_twice_counts_once(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    carried: list[list[mail.Message]] = []
    original = mail.deliver_mail

    async def carry(access: Access, messages: list[mail.Message]) -> mail.FollowUp:
        carried.append(messages)
        return await original(access, messages)

    monkeypatch.setattr(dependents_module, "deliver_mail", carry)
    first, second = new_job(), new_job()
    child = new_job(queue="other", parents=(first.id, second.id), result_params=(("x", first.id),))
    await enqueue_jobs(store, [first, second, child])
    jobs = {job.id: job for job in await take(store)}
    await settle(store, completed(jobs[first.id]))
    await original(store._access, carried[0])
    assert await status_of(store, child.id) is BLOCKED
    await settle(store, completed(jobs[second.id]))
    await original(store._access, carried[0])
    found = await take_one(store, runner="r2", queues=("other",))
    assert found.parent_results is not None
    assert found.parent_results.count(first.id) == 1


async def test_an_outdated_message_of_a_death_is_corrected_when_the_parent_completes(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A carrier stood still for long, and its parent was retried meanwhile."""
    parent, child = follow_on([new_job(), new_job(queue="other")])
    await enqueue_jobs(store, [parent, child])
    await settle(store, dead(await take_one(store)))
    await store.operator.retry([parent.id])
    await mail.deliver_mail(store._access, [mail.Message("other", child.id, parent.id, ord("d"))])
    assert await status_of(store, child.id) is CANCELLED
    await settle(store, completed(await take_one(store, runner="r2")))
    assert given(await take_one(store, runner="r3", queues=("other",))) == "1"


async def test_a_producer_that_is_back_finishes_what_it_left(store: RedisStore) -> None:
    """Without a coordinator: the ids are the same."""
    jobs = follow_on([new_job(), new_job(queue="other")])
    with dying_at(("register_children", False)):
        await enqueue_jobs(store, jobs)
    assert await enqueue_jobs(store, jobs) == [job.id for job in jobs]
    await settle(store, completed(await take_one(store)))
    assert given(await take_one(store, runner="r2", queues=("other",))) == "1"
    assert await nothing_left(store)


async def test_a_link_whose_parent_did_not_come_with_it_says_so(store: RedisStore) -> None:
    first, second = follow_on([new_job(queue="other"), new_job()])
    with dying_at(("register_children", False)):
        await enqueue_jobs(store, [first, second])
    await wipe(store, "other")
    facts = await store.operator.why_facts(second.id)
    assert facts is not None
    (reason,) = (each for each in explain(facts).reasons if each.code == "awaits_parent")
    assert reason.text == f"It waits for {first.id}, and there is no such job yet."
    assert await enqueue_jobs(store, [first, second]) == [first.id, second.id]
    assert await nothing_left(store)
    await settle(store, completed(await take_one(store, queues=("other",))))
    assert given(await take_one(store, runner="r2")) == "1"


async def test_a_result_that_is_gone_is_not_taken_for_none(store: RedisStore, clock: ManualClock) -> None:
    """The parent was dropped before a child asked for it whose producer had died."""
    (parent,) = await enqueue_jobs(store, [new_job()])
    job = await take_one(store)
    taker, waiter = after(new_job(queue="other"), parent), new_job(queue="other", parents=(parent,))
    with dying_at(("register_children", False)):
        await enqueue_jobs(store, [taker, waiter])
    await settle(store, completed(job))
    await store.operator.delete([parent])
    await be_left_alone(store, clock)
    assert await statuses(store, [taker.id, waiter.id]) == [BLOCKED, PENDING]
    clock.advance(asking.GIVE_UP_AFTER)
    await store.tidy()
    assert await status_of(store, taker.id) is CANCELLED
    assert await nothing_left(store)


async def test_a_late_clean_up_leaves_what_was_sent_since(
    store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A carrier stood still; its parent was retried meanwhile, died again, and so did who would have told that."""
    parent, child = follow_on([new_job(), new_job(queue="other")])
    await enqueue_jobs(store, [parent, child])
    carried: list[mail.Message] = []

    async def keep(access: Access, messages: list[mail.Message]) -> None:
        carried.extend(messages)

    with monkeypatch.context() as patched:
        patched.setattr(mail, "_clear", keep)
        await settle(store, dead(await take_one(store)))
    clock.advance(1)
    await store.operator.retry([parent.id])
    job = await take_one(store, runner="r2")
    with dying_at(("deliver_mail", False)):
        await settle(store, dead(job))
    await mail._clear(store._access, carried)
    await be_left_alone(store, clock)
    assert await statuses(store, [parent.id, child.id]) == [Status.DEAD, CANCELLED]


async def test_mail_for_a_child_that_is_always_gone_on_is_kept(
    store: RedisStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it is looked for, it is moved to another queue."""
    parent, child = follow_on([new_job(), new_job(queue="other")])
    await enqueue_jobs(store, [parent, child])
    job, original, places = await take_one(store), read_anywhere, iter(("third", "fourth", "fifth"))

    async def see_and_move(access: Access, ids: set[JobId]) -> JobView:
        found = await original(access, ids)
        await store.operator.change([child.id], JobChange(queue=next(places)))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(mail, "read_anywhere", see_and_move)
        patched.setattr(operator_verbs, "_find_again", stay_quiet)
        await store.operator.change([child.id], JobChange(queue="second"))
        await settle(store, completed(job))
    assert next(places, None) is None
    await store.operator.delete([parent.id])  # now only the mail tells its result
    await be_left_alone(store, clock)
    assert given(await take_one(store, runner="r2", queues=("fifth",))) == "1"
    await be_left_alone(store, clock)
    assert await nothing_left(store)


async def stay_quiet(*_: object) -> None:
    """Who moved a job dies before it asks."""


async def test_a_child_whose_parent_never_comes_is_cancelled_in_the_end(
    store: RedisStore, clock: ManualClock
) -> None:
    """Its producer died between two queues."""
    first, second, third = follow_on([new_job(), new_job(queue="other"), new_job()])
    with dying_at(("enqueue", True)):
        await enqueue_jobs(store, [first, second, third])
    await wipe(store, "other")
    await be_left_alone(store, clock)
    assert await status_of(store, third.id) is BLOCKED, "it may come yet"
    clock.advance(asking.GIVE_UP_AFTER)
    await store.tidy()
    assert await status_of(store, third.id) is CANCELLED


@pytest.mark.parametrize("lost", ["what the parent knew", "what the child received"])
async def test_a_child_of_which_a_failover_forgot_goes_on_all_the_same(
    store: RedisStore, clock: ManualClock, lost: str
) -> None:
    """The new master of one queue has not received the newest of it, and the other queue takes it for done."""
    access = store._access
    (parent,) = await enqueue_jobs(store, [new_job()])
    jobs, dependents = access.server.keys.of_queue("default", ("jobs", "dependents"))
    of_parent = await access._command("HGET", jobs, parent)
    child = after(new_job(queue="other"), parent)
    await enqueue_jobs(store, [child])
    keys = access.server.keys.of_queue("other", tuple(QUEUE_KEYS))
    of_child = [await access._command("DUMP", key) for key in keys]
    if lost == "what the parent knew":
        await access._command("HSET", jobs, parent, of_parent)
        await access._command("DEL", dependents)
    await settle(store, completed(await take_one(store)))
    if lost == "what the child received":
        assert await status_of(store, child.id) is PENDING
        for key, value in zip(keys, of_child, strict=True):
            await access._command("DEL", key)
            if value is not None:
                await access._command("RESTORE", key, 0, value)
    assert await status_of(store, child.id) is BLOCKED
    await be_left_alone(store, clock)
    assert await status_of(store, child.id) is BLOCKED, "no server knows yet"
    clock.advance(3600 * SECOND)
    await be_left_alone(store, clock)
    assert given(await take_one(store, runner="r2", queues=("other",))) == "1"
    assert await nothing_left(store)


@pytest.mark.parametrize("queue", ["default", "other"])
async def test_long_results_are_passed_on_one_by_one(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    """No script copies all of them at once."""
    long, original = '"' + "x" * (MAX_TEXT // 2) + '"', Access.call_queues
    texts: list[int] = []

    async def measured(self: Access, wanted: str, requests: Mapping[str, Any]) -> Any:
        if wanted in ("complete", "deliver_mail"):
            texts.extend(len(repr(request)) for request in requests.values())
        return await original(self, wanted, requests)

    families = [follow_on([new_job(), new_job(queue=queue)]) for _ in range(5)]
    await enqueue_jobs(store, [job for family in families for job in family])
    jobs = await take(store)
    monkeypatch.setattr(Access, "call_queues", measured)
    await store.jobs.settle([completed(job, long) for job in jobs])
    assert max(texts) < 1.5 * MAX_TEXT
    late = [after(new_job(queue="late"), family[0].id) for family in families]
    await enqueue_jobs(store, late)
    assert max(texts) < 1.5 * MAX_TEXT
    found = [*await take(store, runner="r2", queues=(queue,)), *await take(store, runner="r3", queues=("late",))]
    assert [given(job) for job in found] == [long] * 10
