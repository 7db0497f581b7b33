"""--until-empty: what holds a worker, and what does not."""

import logging
from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import completed, enqueue_one, put, running, settle
from tests.support.timing import MINUTE, add, jobs_of
from windlass import Queue, Status
from windlass.client.groups.opening import open_group, seal_group
from windlass.coordinator.duties import Fire
from windlass.core.events import Event, silent
from windlass.core.groups.ids import GROUP_TYPE, new_group_id
from windlass.core.log_events import GroupStaysOpen
from windlass.core.moments import SECOND
from windlass.observe.logs import sentence
from windlass.store.contract import Store
from windlass.worker.supervisor import side_tasks
from windlass.worker.supervisor.side_tasks import is_empty, until_empty


async def test_nothing_at_all_is_empty(store: Store) -> None:
    assert await is_empty(store, ["default", "never-seen"])


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING, Status.FAILED])
async def test_work_that_is_left_holds_the_worker(store: Store, status: Status) -> None:
    await put(store, status)
    assert not await is_empty(store, ["default"])


@pytest.mark.parametrize(
    "status", [Status.COMPLETED, Status.DEAD, Status.CANCELLED, Status.BLOCKED, Status.SCHEDULED]
)
async def test_what_has_ended_or_waits_for_long_does_not(store: Store, status: Status) -> None:
    await put(store, status)
    assert await is_empty(store, ["default"])


@pytest.mark.parametrize(("delay", "empty"), [(SECOND // 2, False), (SECOND, False), (SECOND + 1, True)])
async def test_what_is_due_within_a_second_does(store: Store, delay: int, empty: bool) -> None:
    await put(store, Status.SCHEDULED, delay=delay)
    assert await is_empty(store, ["default"]) is empty


async def test_pending_jobs_of_other_queues_are_named_at_the_end(store: Store) -> None:
    await put(store, Status.PENDING, queue="imagse")
    await put(store, Status.SCHEDULED, queue="later", delay=MINUTE)
    assert await until_empty(store, ["default"], silent) == ("imagse",)


async def test_other_queues_do_not(store: Store) -> None:
    await put(store, Status.PENDING, queue="other")
    await put(store, Status.SCHEDULED, queue="other", delay=1)
    assert await is_empty(store, ["default"])


async def test_paused_queues_do_not(store: Store) -> None:
    await put(store, Status.PENDING)
    await store.queues.pause("default", None)
    assert await is_empty(store, ["default"])


async def test_a_waiting_job_whose_key_is_freed_between_the_reads_does(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = await running(store, concurrency_key="k")
    await enqueue_one(store, concurrency_key="k")
    await store.jobs.admit(100)
    queues, list_ = store.queues, store.queues.list

    async def end_first() -> list[Queue]:
        await settle(store, completed(holder))
        return await list_()

    monkeypatch.setattr(type(queues), "list", lambda _: end_first())
    assert not await is_empty(store, ["default"])


async def test_one_that_is_woken_between_the_looks_does(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the last member of a group wakes the group."""
    id_ = await put(store, Status.SCHEDULED, delay=MINUTE)
    admit = type(store.jobs).admit

    async def woken_first(jobs: Any, *args: Any) -> Any:
        await store.operator.run_now([id_])
        return await admit(jobs, *args)

    monkeypatch.setattr(type(store.jobs), "admit", woken_first)
    assert not await is_empty(store, ["default"])


async def test_a_tick_that_has_come_does_until_it_is_fired(store: Store, clock: ManualClock) -> None:
    await add(store)
    assert await is_empty(store, ["default"])
    clock.advance(MINUTE)
    assert not await is_empty(store, ["default"])
    assert await is_empty(store, ["other"])
    await Fire(store, silent).run()
    assert not await is_empty(store, ["default"])
    await store.operator.cancel([job.id for job in await jobs_of(store)], "seen")
    assert await is_empty(store, ["default"])


async def test_an_open_group_that_is_never_sealed_is_named_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_tasks, "UNSEALED_SECONDS", 0.0)
    monkeypatch.setattr(side_tasks, "EMPTY_CHECK_SECONDS", 0.001)
    group, sealed = new_group_id(), new_group_id()
    payload = f'{{"group": "{group}", "size": 0, "open": true}}'
    for each in (group, sealed):
        await open_group(store, each)
        await enqueue_one(store, id=each, type=GROUP_TYPE, payload=payload, delay=MINUTE)
    await seal_group(store, sealed, 0)
    heard: list[Event] = []
    looks = 0
    empty = side_tasks.is_empty

    async def looked(*args: Any) -> bool:
        nonlocal looks
        looks += 1
        if looks == 5:
            await store.operator.cancel([sealed], "enough")
        if looks == 10:
            await store.operator.cancel([group], "enough")
        return await empty(*args)

    monkeypatch.setattr(side_tasks, "is_empty", looked)
    await until_empty(store, ["default"], heard.append)
    assert looks == 10
    assert heard == [GroupStaysOpen(flow=group)]
    level, reported = sentence(heard[0])
    assert level == logging.WARNING
    assert f"windlass flows cancel {group}" in reported


async def test_an_open_group_that_waits_for_a_moment_is_not_named(store: Store) -> None:
    heard: list[Event] = []
    look = side_tasks.UnsealedGroups(store, heard.append).look
    group = new_group_id()
    await open_group(store, group)
    await look({group})
    await look(set())
    await look({group})
    assert heard == []
