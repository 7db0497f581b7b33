"""Versions: a change that asks for one leaves other versions alone; the check and the change are one step."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_one, enqueue_one, look, open_lease, put
from windlass.core.flow.queue import QueueSettings
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.job import NewJob
from windlass.core.jobs.version import Versions
from windlass.core.moments import SECOND
from windlass.core.schedules.schedule import settings
from windlass.core.status import Status
from windlass.errors import ChangedSince
from windlass.store.contract import Store
from windlass.store.records import Transition

Verb = Callable[[Store, JobId, Versions], Awaitable[list[Transition | None]]]
VERBS: dict[str, tuple[Status, Verb]] = {
    "cancel": (Status.PENDING, lambda store, id_, at: store.operator.cancel([id_], "enough", at)),
    "ask to stop": (Status.RUNNING, lambda store, id_, at: store.operator.cancel([id_], "enough", at)),
    "retry failed": (Status.FAILED, lambda store, id_, at: store.operator.retry([id_], at)),
    "retry dead": (Status.DEAD, lambda store, id_, at: store.operator.retry([id_], at)),
    "run": (Status.SCHEDULED, lambda store, id_, at: store.operator.run_now([id_], at)),
    "change": (Status.PENDING, lambda store, id_, at: store.operator.change([id_], JobChange(priority=7), at)),
    "move": (Status.PENDING, lambda store, id_, at: store.operator.change([id_], JobChange(queue="other"), at)),
    "repair": (Status.DEAD, lambda store, id_, at: store.operator.change([id_], JobChange(payload='{"n": 2}'), at)),
    "delete": (Status.COMPLETED, lambda store, id_, at: store.operator.delete([id_], at)),
}


@pytest.mark.parametrize("name", sorted(VERBS))
async def test_a_job_is_changed_at_its_version_alone(store: Store, clock: ManualClock, name: str) -> None:
    status, verb = VERBS[name]
    id_ = await put(store, status, payload='{"n": 1}')
    before = await look(store, id_)
    clock.advance(SECOND)
    assert await verb(store, id_, {id_: "0-0-0"}) == [Transition(id_, status, done=False, stale=True)]
    assert await look(store, id_) == before
    (moved,) = await verb(store, id_, {id_: before.version})
    assert moved is not None
    assert (moved.done, moved.stale) == (True, False)
    (after,) = await store.operator.get([id_])
    assert after is None or after.version != before.version


async def test_a_job_that_waited_is_asked_to_stop_at_its_version(store: Store, clock: ManualClock) -> None:
    id_ = await enqueue_one(store)
    clock.advance(SECOND)
    await open_lease(store)
    await claim_one(store)
    before = await look(store, id_)
    clock.advance(SECOND)
    (moved,) = await store.operator.cancel([id_], "enough", {id_: before.version})
    assert moved == Transition(id_, Status.RUNNING, done=True)
    (moved,) = await store.operator.cancel([id_], "enough", {id_: before.version})
    assert moved == Transition(id_, Status.RUNNING, done=False, stale=True)


async def test_others_of_the_call_are_changed(store: Store, clock: ManualClock) -> None:
    ids = [await enqueue_one(store) for _ in range(3)]
    versions = {id_: (await look(store, id_)).version for id_ in ids}
    clock.advance(SECOND)
    await store.operator.change([ids[1]], JobChange(priority=1))
    moved = await store.operator.cancel(ids, "enough", versions)
    assert [each and (each.id, each.done, each.stale) for each in moved] == [
        (ids[0], True, False),
        (ids[1], False, True),
        (ids[2], True, False),
    ]


async def test_of_many_changes_of_one_version_one_is_done(store: Store, clock: ManualClock) -> None:
    for status, change in ((Status.PENDING, JobChange(priority=1)), (Status.DEAD, JobChange(payload='{"n": 3}'))):
        id_ = await put(store, status, payload='{"n": 1}')
        at = {id_: (await look(store, id_)).version}
        clock.advance(SECOND)
        moved = await asyncio.gather(*(store.operator.change([id_], change, at) for _ in range(8)))
        assert sorted((each.done, each.stale) for (each,) in moved if each) == [(False, True)] * 7 + [(True, False)]


async def test_an_unknown_job_has_no_version(store: Store) -> None:
    id_ = "0190c0de-0000-7000-8000-000000000001"
    assert await store.operator.cancel([id_], "enough", {id_: "0-0-0"}) == [None]
    assert await store.operator.delete([id_], {id_: "0-0-0"}) == [None]


async def test_a_queue_is_changed_at_its_version_alone(store: Store) -> None:
    queue = await store.queues.change("mail", QueueSettings(max_attempts=2))
    calls: list[Callable[[str], Awaitable[object]]] = [
        lambda at: store.queues.change("mail", QueueSettings(max_attempts=3), None, at),
        lambda at: store.queues.pause("mail", None, at),
        lambda at: store.queues.resume("mail", at),
        lambda at: store.queues.close("mail", at),
        lambda at: store.queues.open("mail", at),
    ]
    for call in calls:
        with pytest.raises(ChangedSince) as refused:
            await call("another")
        assert refused.value.version == queue.version
        assert [each for each in await store.queues.list() if each.name == "mail"] == [queue]
        await call(queue.version)
        (changed,) = [each for each in await store.queues.list() if each.name == "mail"]
        assert changed.version != queue.version
        queue = changed


async def test_of_many_pauses_of_one_version_one_is_done(store: Store) -> None:
    queue = await store.queues.open("mail")
    answers = await asyncio.gather(
        *(store.queues.pause("mail", None, queue.version) for _ in range(8)), return_exceptions=True
    )
    assert sum(isinstance(each, ChangedSince) for each in answers) == 7


async def test_a_schedule_is_changed_at_its_version_alone(store: Store) -> None:
    said = settings(NewJob(id="", type="report", payload="{}"), every=60)
    schedule = await store.schedules.add("daily", said)
    assert schedule is not None
    other = settings(NewJob(id="", type="report", payload="{}"), every=120)
    calls: list[Callable[[str], Awaitable[object]]] = [
        lambda at: store.schedules.change("daily", other, said, at),
        lambda at: store.schedules.pause("daily", at),
        lambda at: store.schedules.resume("daily", at),
        lambda at: store.schedules.change("daily", other, other, at, True),
    ]
    for call in calls:
        with pytest.raises(ChangedSince) as refused:
            await call("another")
        assert refused.value.version == schedule.version
        await call(schedule.version)
        (changed,) = await store.schedules.get(["daily"])
        assert changed is not None
        assert changed.version != schedule.version
        schedule = changed
    assert schedule.paused
    with pytest.raises(ChangedSince):
        await store.schedules.remove("daily", "another")
    assert await store.schedules.remove("daily", schedule.version)


async def test_settings_and_pause_of_a_schedule_are_one_change(store: Store) -> None:
    said = settings(NewJob(id="", type="report", payload="{}"), every=60)
    await store.schedules.add("daily", said)
    other = settings(NewJob(id="", type="report", payload="{}"), every=120)
    changed = await store.schedules.change("daily", other, said, None, True)
    assert changed is not None
    assert (changed.paused, changed.changed) == (True, other)
    assert await store.schedules.change("daily", said, said, None, False) == changed
