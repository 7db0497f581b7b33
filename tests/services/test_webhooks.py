"""The duty that makes deliveries: one for each end and webhook, whatever is killed when."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.services.parts import Listener
from tests.support.clock import ManualClock
from tests.support.seed import cancelled, claim_one, completed, enqueue, open_lease, put, running, settle
from windlass.client.webhooks.records import KIND, as_text, find_webhook
from windlass.coordinator import webhooks as duty
from windlass.coordinator.webhooks import IDLE_SECONDS, LOOK_SECONDS, Webhooks
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.core.webhooks.delivery import QUEUE_SETTINGS, WEBHOOK_QUEUE, WEBHOOK_TYPE
from windlass.core.webhooks.signature import Secret
from windlass.core.webhooks.webhook import StoredWebhook, settings_of
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.records import Ends, JobFilter
from windlass.worker.config import WorkerConfig
from windlass.worker.runner.queue_rules import QueueRetryRules


async def add(store: Store, name: str = "ops", **options: Any) -> None:
    stored = StoredWebhook(
        id=f"id-{name}",
        url="https://example.com/",
        settings=settings_of(**options),
        secrets=(Secret("whsec_YQ=="),),
        mac_key=Secret("s"),
    )
    await store.documents.add(KIND, name, as_text(stored))


async def set_paused(store: Store, name: str, paused: bool) -> None:
    found = await find_webhook(store.documents, name)
    assert found is not None
    changed = StoredWebhook(
        id=found.stored.id,
        url=found.stored.url,
        settings=found.stored.settings,
        secrets=found.stored.secrets,
        mac_key=found.stored.mac_key,
        paused=paused,
    )
    assert await store.documents.replace(KIND, name, as_text(changed), found.version)


async def deliveries(store: Store) -> Counter[tuple[str, str]]:
    """How often each webhook is told of each job."""
    found: Counter[tuple[str, str]] = Counter()
    cursor = None
    while True:
        page = await store.operator.list(JobFilter(queue=WEBHOOK_QUEUE), 1000, cursor)
        found.update((job.payload["webhook"], job.payload["event"]["data"]["job"]) for job in page.items)
        if (cursor := page.next_cursor) is None:
            return found


async def until_done(*duties: Webhooks) -> None:
    for each in duties:
        while await each.run() == 0:
            pass


async def end(store: Store, number: int, **fields: Any) -> list[str]:
    ids = await enqueue(store, number, **fields)
    await store.operator.cancel(ids, "unwanted")
    return ids


async def test_each_webhook_is_delivered_once_what_it_selects(store: Store, clock: ManualClock) -> None:
    before = await put(store, Status.DEAD)
    clock.advance(SECOND)
    await add(store, "all")
    await add(store, "mail", events=["job.cancelled"], queues=["mail"])
    one, two = Webhooks(store), Webhooks(store)
    (mail,) = await end(store, 1, queue="mail")
    (other,) = await end(store, 1)
    await until_done(one, two)
    clock.advance(SECOND)
    ended = await running(store)
    await settle(store, completed(ended))
    await until_done(one, two, Webhooks(store))
    found = await deliveries(store)
    assert found == {("all", mail): 1, ("all", other): 1, ("all", ended.id): 1, ("mail", mail): 1}
    assert ("all", before) not in found


async def test_without_a_webhook_the_history_is_not_read_and_nothing_is_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*args: Any) -> Any:
        raise AssertionError("there is no webhook")

    for role, verb in ((store.operator, "ended"), (store.documents, "add"), (store.documents, "replace")):
        monkeypatch.setattr(role, verb, fail)
    await end(store, 1)
    assert await Webhooks(store).run() == IDLE_SECONDS


async def test_ends_of_deliveries_are_not_delivered(store: Store) -> None:
    await add(store)
    one = Webhooks(store)
    await end(store, 1)
    await until_done(one)
    await open_lease(store)
    claimed = await claim_one(store, queues=(WEBHOOK_QUEUE,), types=(WEBHOOK_TYPE,))
    await settle(store, cancelled(claimed))
    await until_done(one)
    assert sum((await deliveries(store)).values()) == 1


async def test_a_coordinator_that_dies_between_reading_and_storing_loses_nothing(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store)
    ids = await end(store, 3)
    stored = store.jobs.enqueue

    async def fail(*args: Any) -> Any:
        raise StoreUnavailable("killed")

    async def store_and_fail(jobs: Any) -> Any:
        await stored(jobs)
        raise StoreUnavailable("killed", maybe_done=True)

    for killed in (fail, store_and_fail):
        with monkeypatch.context() as patch:
            patch.setattr(store.jobs, "enqueue", killed)
            with pytest.raises(StoreUnavailable):
                await Webhooks(store).run()
    clock.advance(3600 * SECOND)
    await until_done(Webhooks(store))
    assert await deliveries(store) == dict.fromkeys((("ops", id_) for id_ in ids), 1)


async def test_the_next_coordinator_goes_on_a_minute_before_the_cursor(store: Store, clock: ManualClock) -> None:
    await add(store)
    await end(store, 2)
    clock.advance(600 * SECOND)
    await until_done(Webhooks(store))
    read: list[int] = []
    ended = store.operator.ended

    async def look(since: Any, after: Any, limit: int) -> Ends:
        read.append(since)
        return await ended(since, after, limit)

    store.operator.ended = look  # type: ignore[method-assign]
    clock.advance(SECOND)
    await until_done(Webhooks(store))
    assert read[0] == clock.wall() - SECOND - duty.LATE


async def test_an_end_that_appears_late_is_reported(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duty, "LATE_EVERY", 0.0)
    await add(store)
    one, ended = Webhooks(store), store.operator.ended
    hidden = await end(store, 1)
    shown = await end(store, 1)

    async def without(since: Any, after: Any, limit: int) -> Ends:
        page = await ended(since, after, limit)
        return Ends(page.now, tuple(each for each in page.ends if each.id not in hidden))

    with monkeypatch.context() as patch:
        patch.setattr(store.operator, "ended", without)
        await one.run()
    clock.advance(duty.LATE // 2)
    for _ in range(3):
        await one.run()
    assert await deliveries(store) == {("ops", shown[0]): 1, ("ops", hidden[0]): 1}


async def test_jobs_that_end_after_the_clock_was_set_back_are_reported(store: Store, clock: ManualClock) -> None:
    await add(store)
    one = Webhooks(store)
    ids = await end(store, 3)
    await until_done(one)
    clock.jump_wall(-3600 * SECOND)
    for coordinator in (one, Webhooks(store), one):
        ids += await end(store, 2)
        await until_done(coordinator)
        clock.advance(SECOND)
    assert await deliveries(store) == dict.fromkeys((("ops", id_) for id_ in ids), 1)
    assert await one.run() == LOOK_SECONDS


async def test_a_paused_webhook_is_delivered_after_it_is_resumed_and_holds_up_no_other(
    store: Store, clock: ManualClock
) -> None:
    await add(store, "first")
    await add(store, "second")
    one = Webhooks(store)
    ids = await end(store, 1)
    await until_done(one)
    await set_paused(store, "first", True)
    for _ in range(3):
        clock.advance(100 * SECOND)
        ids += await end(store, 1)
        await until_done(one)
    assert Counter(name for name, _ in await deliveries(store)) == {"first": 1, "second": 4}
    await set_paused(store, "first", False)
    await until_done(one)
    await until_done(one)
    assert await deliveries(store) == dict.fromkeys(((name, id_) for name in ("first", "second") for id_ in ids), 1)
    assert len(one._readers) == 1
    assert await one.run() == LOOK_SECONDS


@pytest.mark.parametrize("number", [300, pytest.param(10_000, marks=pytest.mark.extended)])
async def test_many_ends_and_coordinators_that_fail_anywhere_give_each_end_one_delivery(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(duty, "PAGE", max(20, number // 50))
    random = Random(7)
    stored, replaced = store.jobs.enqueue, store.documents.replace

    def failing(verb: Any) -> Any:
        async def fail(*args: Any) -> Any:
            if random.random() < 0.2:
                raise StoreUnavailable("before")
            answer = await verb(*args)
            if random.random() < 0.2:
                raise StoreUnavailable("after", maybe_done=True)
            return answer

        return fail

    await add(store)
    ids: list[str] = []
    current = Webhooks(store)
    for _ in range(20):
        clock.advance(random.choice([0, 1, SECOND, 10 * SECOND]))
        ids += await end(store, number // 20)
        with monkeypatch.context() as patch:
            patch.setattr(store.jobs, "enqueue", failing(stored))
            patch.setattr(store.documents, "replace", failing(replaced))
            for _ in range(3):
                try:
                    await current.run()
                except StoreUnavailable:
                    current = random.choice([current, Webhooks(store)])
    await until_done(current, Webhooks(store))
    assert await deliveries(store) == dict.fromkeys((("ops", id_) for id_ in ids), 1)


async def test_a_runner_serves_deliveries_once_there_is_a_webhook_unless_it_was_given_its_queues(
    store: Store,
) -> None:
    every = QueueRetryRules(store, WorkerConfig(app="", concurrency=10), ["default"], Listener())
    some = QueueRetryRules(store, WorkerConfig(app="", queues={"mail": 2}), ["default"], Listener())
    served = []
    for settings in ({}, {WEBHOOK_QUEUE: QUEUE_SETTINGS}):
        await store.queues.declare(settings)
        for rules in (every, some):
            await rules.refresh()
            served.append(dict(rules.served))
    assert served == [{"default": None}, {"mail": 2}, {"default": None, WEBHOOK_QUEUE: 5}, {"mail": 2}]
