"""Queues: the code declares, an operator changes, and the change wins."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, completed, enqueue_one, look, open_lease, put, running, settle
from windlass.core.flow.queue import NO_AGEING, NO_LIMIT, NO_RATE, Queue, QueueSettings
from windlass.core.flow.rate import Rate
from windlass.core.jobs.retry import Fixed, Linear
from windlass.core.moments import SECOND, to_datetime
from windlass.core.status import Status
from windlass.errors import LeaseLost
from windlass.store.contract import Store


async def queue(store: Store, name: str = "default") -> Queue:
    (found,) = [each for each in await store.queues.list() if each.name == name]
    return found


async def test_a_store_without_jobs_has_no_queues(store: Store) -> None:
    assert await store.queues.list() == []


async def test_every_queue_that_was_spoken_of_or_holds_jobs_is_listed(store: Store) -> None:
    await store.queues.declare({"declared": QueueSettings()})
    await store.queues.change("changed", QueueSettings(max_attempts=1))
    await store.queues.pause("paused", None)
    await put(store, Status.PENDING, queue="live")
    await put(store, Status.COMPLETED, queue="finished")
    names = [each.name for each in await store.queues.list()]
    assert names == ["changed", "declared", "finished", "live", "paused"]


async def test_a_declaration_is_read_back(store: Store) -> None:
    declared = QueueSettings(max_attempts=5, retry=Fixed(base=3), retention={Status.DEAD: 7})
    await store.queues.declare({"default": declared})
    found = await queue(store)
    assert (found.declared, found.changed) == (declared, QueueSettings())
    assert (found.rules.max_attempts, found.rules.retry, found.rules.retention[Status.DEAD]) == (5, Fixed(base=3), 7)


async def test_an_operators_change_stays_and_wins_when_the_code_declares_again(store: Store) -> None:
    await store.queues.declare({"default": QueueSettings(max_attempts=5, retry=Fixed())})
    changed = await store.queues.change("default", QueueSettings(max_attempts=9))
    assert (changed.rules.max_attempts, changed.rules.retry) == (9, Fixed())
    await store.queues.declare({"default": QueueSettings(max_attempts=2, retry=Linear())})
    found = await queue(store)
    assert (found.rules.max_attempts, found.rules.retry) == (9, Linear())
    assert (await look(store, await enqueue_one(store))).max_attempts == 9


async def test_an_empty_change_takes_the_old_one_back(store: Store) -> None:
    await store.queues.declare({"default": QueueSettings(max_attempts=5)})
    await store.queues.change("default", QueueSettings(max_attempts=9))
    assert (await store.queues.change("default", QueueSettings())).rules.max_attempts == 5


async def test_declaring_resumes_nothing(store: Store) -> None:
    await store.queues.pause("default", None)
    await store.queues.declare({"default": QueueSettings(max_attempts=5)})
    assert (await queue(store)).paused


async def test_a_queue_not_named_in_a_declaration_stays(store: Store) -> None:
    await store.queues.declare({"a": QueueSettings(max_attempts=5)})
    await store.queues.declare({"b": QueueSettings()})
    assert (await queue(store, "a")).rules.max_attempts == 5


async def test_pause_and_resume_answer_with_the_queue(store: Store, clock: ManualClock) -> None:
    assert await store.queues.pause("default", None) == Queue(name="default", paused=True)
    until = to_datetime(clock.wall() + 5 * SECOND)
    assert await store.queues.pause("default", 5 * SECOND) == Queue(name="default", paused=True, paused_until=until)
    assert await queue(store) == Queue(name="default", paused=True, paused_until=until)
    assert await store.queues.resume("default") == Queue(name="default")
    assert await queue(store) == Queue(name="default")


async def test_a_pause_that_is_over_is_not_shown(store: Store, clock: ManualClock) -> None:
    await store.queues.pause("default", 5 * SECOND)
    clock.advance(5 * SECOND)
    assert await queue(store) == Queue(name="default")


async def test_a_pause_lets_running_jobs_finish(store: Store) -> None:
    job = await running(store)
    await store.queues.pause("default", None)
    await settle(store, completed(job))
    assert (await look(store, job.id)).status is Status.COMPLETED


async def test_a_pause_does_not_refuse_new_jobs(store: Store) -> None:
    await store.queues.pause("default", None)
    id_ = await enqueue_one(store)
    await open_lease(store)
    assert await claim_ids(store) == []
    assert (await look(store, id_)).status is Status.PENDING


async def test_a_change_of_what_is_another_by_now_is_not_made(store: Store) -> None:
    first, second = QueueSettings(max_attempts=9), QueueSettings(max_concurrency=4)
    assert (await store.queues.change("q", first, QueueSettings())).changed == first
    assert (await store.queues.change("q", second, QueueSettings())).changed == first
    assert (await store.queues.list())[0].changed == first
    assert (await store.queues.change("q", second, first)).changed == second
    assert (await store.queues.change("q", first)).changed == first


async def test_limits_are_kept_as_they_were_said(store: Store) -> None:
    said = QueueSettings(
        max_concurrency=NO_LIMIT, rate_limit=NO_RATE, fair=False, weights={"acme": 0.5}, ageing=NO_AGEING
    )
    declared = QueueSettings(max_concurrency=8, rate_limit=Rate(5, 60_000_000, 9), fair=True, weights={"b": 2.0})
    await store.queues.declare({"q": declared})
    await store.queues.change("q", said)
    (found,) = await store.queues.list()
    assert (found.declared, found.changed) == (declared, said)
    assert not found.rules.limited


async def test_looking_for_work_makes_no_queue(store: Store) -> None:
    await open_lease(store)
    names = ("one", "two", "three")
    assert await claim_ids(store, queues=names) == []
    assert await claim_ids(store, queues=("one",)) == []
    assert not await store.signals.has_work(names, None)
    with pytest.raises(LeaseLost):
        await claim_ids(store, "r2", queues=("one",))
    assert await store.queues.list() == []
    assert (await store.operator.counts()).queues == {}


async def test_a_queue_that_was_claimed_from_before_it_had_jobs_gives_them(store: Store) -> None:
    await open_lease(store)
    assert await claim_ids(store, queues=("one", "two")) == []
    id_ = await enqueue_one(store, queue="two")
    assert await claim_ids(store, queues=("one", "two")) == [id_]
