"""Gauges of the whole store: they say what `stats` says, within a bound, and that the store is away if it is."""

import asyncio
from typing import Any

import pytest

from tests.support.seed import claim_one, enqueue, enqueue_one, open_lease, worker_info
from tests.support.timing import said
from windlass.core.status import Status
from windlass.observe import store_gauges
from windlass.observe.families import Family
from windlass.observe.reading import MAX_ROWS
from windlass.observe.store_gauges import StoreState, store_families
from windlass.store.contract import Store
from windlass.store.records import Campaign


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need more than the second that a scrape gives the store."""
    monkeypatch.setattr(store_gauges, "READ_SECONDS", 60.0)


def values(families: list[Family], name: str) -> dict[tuple[str, ...], float]:
    (found,) = [each for each in families if each.name == f"windlass_{name}"]
    return dict(found.values)


async def test_queues_are_counted_as_stats_counts_them(store: Store) -> None:
    runner = await open_lease(store)
    await enqueue(store, 3, queue="mail")
    await enqueue(store, 2)
    await claim_one(store, runner)
    await store.queues.pause("mail", None)
    families, counts = await store_families(store), await store.operator.counts()
    jobs = values(families, "queue_jobs")
    assert {pair: value for pair, value in jobs.items() if value} == {
        ("default", "pending"): 1,
        ("default", "running"): 1,
        ("mail", "pending"): 3,
    }
    assert jobs == {(queue, status): n for queue in counts for status, n in counts[queue].items()}
    assert values(families, "queue_paused") == {("default",): 0, ("mail",): 1}
    assert values(families, "store_up") == {(): 1}


async def test_a_queue_without_jobs_is_shown_with_zeros(store: Store) -> None:
    await store.queues.pause("mail", None)
    families = await store_families(store)
    assert values(families, "queue_jobs") == {("mail", str(status)): 0 for status in Status}
    assert values(families, "queue_oldest_pending_seconds") == {("mail",): 0}
    assert values(families, "queue_paused") == {("mail",): 1}


async def test_the_oldest_waiting_job_of_each_queue_is_shown(store: Store) -> None:
    await enqueue(store, 1, queue="mail")
    expected = await store.stats.oldest()
    found = values(await store_families(store), "queue_oldest_pending_seconds")
    assert found["mail",] >= expected["mail"] / 1_000_000


async def test_workers_coordinator_and_types_without_a_worker_are_shown(store: Store) -> None:
    await store.workers.beat(worker_info(types=("known",)))
    await enqueue_one(store, type="strange")
    await store.jobs.park()
    await store.schedules.declare({"nightly": said({"type": "stranger"}, every=3600)})
    before = await store_families(store)
    await store.leader.campaign(Campaign("c", 10_000_000))
    after = await store_families(store)
    assert [values(each, "coordinator_up")[()] for each in (before, after)] == [0, 1]
    assert values(after, "workers") == {(): 1}
    assert values(after, "types_without_worker") == {("strange",): 1, ("stranger",): 1}
    assert [*values(after, "schedule_next_tick_timestamp_seconds")] == [("nightly",)]


async def test_queues_in_which_jobs_wait_and_that_no_worker_serves_are_shown(store: Store) -> None:
    await store.workers.beat(worker_info(queues=("default",)))
    for queue in ("default", "mail", "held"):
        await enqueue_one(store, queue=queue)
    await store.queues.pause("held", None)
    assert values(await store_families(store), "queues_without_worker") == {("mail",): 1}


class Deaf:
    """A store that never answers."""

    def __getattr__(self, name: str) -> Any:
        return self

    def with_timeout(self, seconds: float) -> "Deaf":
        return self

    async def counts(self) -> None:
        await asyncio.Event().wait()


async def test_a_store_that_does_not_answer_is_said_to_be_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_gauges, "READ_SECONDS", 0.01)
    deaf: Any = Deaf()
    assert [(each.name, *each.values) for each in await store_families(deaf)] == [("windlass_store_up", ((), 0))]


async def test_more_queues_than_the_bound_are_added_up_as_other(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    many = {f"q{number:03}": {"pending": 2} for number in range(500)}

    async def state(_: Store) -> StoreState:
        return StoreState(
            counts=many,
            oldest={"q499": 7.0, "q498": 9.0},
            paused=dict.fromkeys(many, False),
            workers=[],
            parked_types=[],
            schedules=[],
            coordinator=None,
        )

    monkeypatch.setattr(store_gauges, "read_state", state)
    families = await store_families(store)
    jobs = values(families, "queue_jobs")
    assert len({queue for queue, _ in jobs}) == MAX_ROWS + 1
    assert jobs["other", "pending"] == 2 * 300
    assert values(families, "queue_oldest_pending_seconds")["other",] == 9.0
