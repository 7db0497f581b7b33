"""Links over queues, in steps: whoever dies on the way, each child is told once, and nobody is left waiting."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.redis.deaths import Step, be_left_alone, dying_at, shown, steps, winding
from tests.support.chains import after, chain, follow_on, given, hand_in, statuses, take_one
from tests.support.clock import ManualClock
from tests.support.lines import take
from tests.support.seed import completed, dead, look, new_job, settle, status_of
from windlass.core.change import JobChange
from windlass.core.ids import JobId
from windlass.core.job import Claimed
from windlass.core.moments import SECOND
from windlass.core.outcome import Settlement
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.redis import asking, heirs, mail, waiting
from windlass.store.redis.access import Access
from windlass.store.redis.decide import Decided, replace_decided
from windlass.store.redis.replace import Replaced
from windlass.store.redis.store import RedisStore
from windlass.worker.empty import is_empty

BLOCKED, PENDING, COMPLETED, CANCELLED = Status.BLOCKED, Status.PENDING, Status.COMPLETED, Status.CANCELLED


async def wipe(store: RedisStore, queue: str) -> None:
    """As if no job had ever come to it."""
    access = store._access
    keys = ("jobs", "ids", "counts", "heirs", "asking", "ready", "pend")
    await access._command("DEL", *access.server.keys.of_queue(queue, keys))


async def nothing_left(store: RedisStore) -> bool:
    """Whether everybody was told of everything."""
    access = store._access
    for queue in await access.queue_names():
        for key, size in (("wake", "HLEN"), ("outbox", "HLEN"), ("asking", "ZCARD")):
            if await access._command(size, *access.server.keys.of_queue(queue, (key,))):
                return False
    return True


@pytest.mark.parametrize("step", steps("asking", "register", "deliver"), ids=shown)
@pytest.mark.parametrize("ending", [completed, dead, None])
async def test_a_child_whose_producer_dies_finds_its_parent_in_another_queue(
    store: RedisStore, clock: ManualClock, step: Step, ending: Callable[[Claimed], Settlement] | None
) -> None:
    (parent,) = await hand_in(store, [new_job()])
    running = await take_one(store)
    child = after(new_job(queue="other"), parent)
    with dying_at(step):
        await hand_in(store, [child])
    if ending is not None:
        await settle(store, ending(running))
    await be_left_alone(store, clock)
    expected = BLOCKED if ending is None else PENDING if ending is completed else CANCELLED
    assert await status_of(store, child.id) is expected
    if ending is None:
        await settle(store, completed(running))
        assert given(await take_one(store, queues=("other",))) == "1"
    assert await nothing_left(store)


async def test_a_producer_that_hands_in_again_after_it_died_finishes_nothing_twice(
    store: RedisStore, clock: ManualClock
) -> None:
    (parent,) = await hand_in(store, [new_job()])
    child = after(new_job(queue="other"), parent)
    with dying_at(("register", False)):
        await hand_in(store, [child])
    assert await hand_in(store, [child]) == [child.id]
    await be_left_alone(store, clock)
    await settle(store, completed(await take_one(store)))
    assert given(await take_one(store, queues=("other",))) == "1"


@pytest.mark.parametrize("step", [("complete", True), *steps("deliver", "delivered")], ids=shown)
async def test_what_a_dead_worker_did_not_deliver_comes_all_the_same_and_once(
    store: RedisStore, clock: ManualClock, step: Step
) -> None:
    first, second = new_job(), new_job(queue="third")
    child = new_job(queue="other", parents=(first.id, second.id), takes=(("x", first.id),))
    await hand_in(store, [first, second, child])
    job = await take_one(store)
    with dying_at(step):
        await settle(store, completed(job, '"one"'))
    await be_left_alone(store, clock)
    await be_left_alone(store, clock)
    assert await status_of(store, child.id) is BLOCKED, "one parent counts once"
    await settle(store, completed(await take_one(store, runner="r2", queues=("third",)), '"two"'))
    found = await take_one(store, runner="r3", queues=("other",))
    assert found.inputs is not None
    assert found.inputs.count(first.id) == 1
    assert await nothing_left(store)


async def test_a_worker_does_not_leave_a_child_that_was_not_told_yet(store: RedisStore, clock: ManualClock) -> None:
    """Nothing is pending or running then, and the chain is not at its end all the same."""
    await hand_in(store, follow_on([new_job(), new_job(queue="other")]))
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
    with dying_at(("register", False)):
        await hand_in(store, [first, second])
    await wipe(store, "other")
    assert not await is_empty(store, ["default"])
    clock.advance(31 * SECOND)
    assert await is_empty(store, ["default"])


@pytest.mark.parametrize("step", [("replace", True), *steps("follow", "deliver", "delivered")], ids=shown)
async def test_a_chain_falls_to_its_end_though_who_ended_it_dies(
    store: RedisStore, clock: ManualClock, step: Step
) -> None:
    ids = await hand_in(store, winding())
    job = await take_one(store)
    with dying_at(step):
        await settle(store, dead(job))
    await be_left_alone(store, clock)
    assert await statuses(store, ids) == [Status.DEAD, *[CANCELLED] * 4]
    assert await nothing_left(store)


@pytest.mark.parametrize("step", [("replace", True), *steps("follow", "deliver", "delivered", "register")], ids=shown)
async def test_a_chain_stands_up_to_its_end_though_who_retried_it_dies(
    store: RedisStore, clock: ManualClock, step: Step
) -> None:
    ids = await hand_in(store, winding())
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
    original, calls = Access.calls, 0

    async def some(self: Access, wanted: str, requests: Mapping[str, Any]) -> Any:
        nonlocal calls
        calls += wanted == "follow"
        if calls == 3:
            raise StoreUnavailable("it is dead")
        return await original(self, wanted, requests)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Access, "calls", some)
        with pytest.raises(StoreUnavailable):
            await settle(store, dead(job))
    counts = (await store.operator.counts()).queues["default"]
    assert 0 < counts["blocked"] < 499, "each call does a part"
    await store.tidy()
    assert set(await statuses(store, ids[1:])) == {CANCELLED}


async def test_what_is_delivered_twice_counts_once(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    carried: list[list[mail.Message]] = []
    original = mail.carry_mail

    async def carry(access: Access, messages: list[mail.Message]) -> mail.ToDo:
        carried.append(messages)
        return await original(access, messages)

    monkeypatch.setattr(heirs, "carry_mail", carry)
    first, second = new_job(), new_job()
    child = new_job(queue="other", parents=(first.id, second.id), takes=(("x", first.id),))
    await hand_in(store, [first, second, child])
    jobs = {job.id: job for job in await take(store)}
    await settle(store, completed(jobs[first.id]))
    await original(store._access, carried[0])
    assert await status_of(store, child.id) is BLOCKED
    await settle(store, completed(jobs[second.id]))
    await original(store._access, carried[0])
    found = await take_one(store, runner="r2", queues=("other",))
    assert found.inputs is not None
    assert found.inputs.count(first.id) == 1


async def test_old_news_of_a_death_is_mended_when_the_parent_completes(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A carrier stood still for long, and its parent was retried meanwhile."""
    parent, child = follow_on([new_job(), new_job(queue="other")])
    await hand_in(store, [parent, child])
    await settle(store, dead(await take_one(store)))
    await store.operator.retry([parent.id])
    await mail.carry_mail(store._access, [mail.Message("other", child.id, parent.id, ord("d"))])
    assert await status_of(store, child.id) is CANCELLED
    await settle(store, completed(await take_one(store, runner="r2")))
    assert given(await take_one(store, runner="r3", queues=("other",))) == "1"


async def test_a_child_whose_parent_never_comes_is_called_off_in_the_end(
    store: RedisStore, clock: ManualClock
) -> None:
    """Its producer died between two queues."""
    first, second, third = follow_on([new_job(), new_job(queue="other"), new_job()])
    with dying_at(("enqueue", True)):
        await hand_in(store, [first, second, third])
    await wipe(store, "other")
    await be_left_alone(store, clock)
    assert await status_of(store, third.id) is BLOCKED, "it may come yet"
    clock.advance(asking.GIVEN_UP)
    await store.tidy()
    assert await status_of(store, third.id) is CANCELLED


@pytest.mark.parametrize("which", [0, 1])
async def test_links_that_are_moved_find_each_other(store: RedisStore, which: int) -> None:
    ids = await chain(store, 2)
    await store.operator.change([ids[which]], JobChange(queue="there"))
    await settle(store, completed(await take_one(store, queues=("default", "there"))))
    assert given(await take_one(store, runner="r2", queues=("default", "there"))) == "1"
    assert await nothing_left(store)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("step", [("departed", True), *steps("follow", "register")], ids=shown)
async def test_links_find_each_other_though_who_moved_one_dies(
    store: RedisStore, clock: ManualClock, which: int, step: Step
) -> None:
    if which == 1 and step[0] == "follow":
        step = ("asking", step[1])  # a child asks, and has nobody to tell
    ids = await chain(store, 2)
    with dying_at(step):
        await store.operator.change([ids[which]], JobChange(queue="there"))
    await settle(store, completed(await take_one(store, queues=("default", "there"))))
    await be_left_alone(store, clock)
    assert given(await take_one(store, runner="r2", queues=("default", "there"))) == "1"


async def test_a_link_is_shown_with_what_its_parents_do(store: RedisStore) -> None:
    first, second = follow_on([new_job(), new_job(queue="other")])
    await hand_in(store, [first, second])
    facts = await store.operator.circumstances(second.id)
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
