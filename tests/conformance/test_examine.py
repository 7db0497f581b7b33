"""examine: a store looked at from outside, and a census that is a recount."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import (
    LEASE,
    completed,
    enqueue,
    let_lapse,
    open_lease,
    put,
    running,
    settle,
    worker_info,
)
from tests.support.stores import LASTING, STORES
from tests.support.timing import add
from windlass.core.moments import DAY, SECOND
from windlass.core.stats.meter import Meter, Recent
from windlass.core.status import Status
from windlass.errors import ConfigError
from windlass.store.contract import Store
from windlass.store.doctor import KEY_CHECK as KEYS
from windlass.store.doctor import Census, Level
from windlass.store.open import examine
from windlass.store.records import Campaign


@pytest.fixture(params=LASTING)
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """A store that others can look at from outside."""
    opened = STORES[request.param].open(tmp_path, clock)
    yield opened
    await opened.close()


async def census_of(store: Store, clock: ManualClock) -> Census:
    """The census of a store that is sound."""
    found = await examine(store.address, clock=clock)
    assert [each for each in found.findings if each.level is Level.PROBLEM] == []
    assert found.census is not None
    return found.census


def waiting(census: Census) -> dict[tuple[str, str, bool], int]:
    return {(each.queue, each.type, each.due): each.jobs for each in census.waiting}


async def test_an_empty_store_has_no_problems_and_an_empty_census(store: Store, clock: ManualClock) -> None:
    await store.migrate()
    census = await census_of(store, clock)
    assert census == Census(
        now=clock.wall(),
        newest=None,
        workers=(),
        waiting=(),
        counted_all=True,
        paused=(),
        dead=0,
        late_runners=0,
        late_jobs=0,
        coordinator=None,
        schedules=(),
        oldest={},
        recent=Recent(clock.wall(), ()),
    )


async def test_waits_and_the_last_hour_are_in_the_census(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 1, queue="mail")
    await store.stats.record([Meter(queue="mail", type="t", dead=3)])
    clock.advance(90 * SECOND)
    census = await census_of(store, clock)
    assert census.oldest == {"mail": 90 * SECOND}
    assert [(each.queue, each.dead) for each in census.recent.meters] == [("mail", 3)]
    clock.advance(3600 * SECOND)
    assert (await census_of(store, clock)).recent.meters == ()


async def test_schedules_are_in_the_census_as_they_are(store: Store, clock: ManualClock) -> None:
    await add(store, "b", every=60)
    await add(store, "a", cron="0 9 * * *")
    await store.schedules.pause("a")
    clock.advance(90 * SECOND)
    census = await census_of(store, clock)
    assert list(census.schedules) == await store.schedules.list()
    assert [(each.name, each.paused) for each in census.schedules] == [("a", True), ("b", False)]


async def test_every_finding_has_a_name_and_a_sentence_and_trouble_has_advice(store: Store) -> None:
    await store.migrate()
    found = await examine(store.address)
    assert len({each.check for each in found.findings}) >= 3
    assert [each for each in found.findings if not each.check or " " not in each.says] == []
    trouble = [each for each in found.findings if each.level in (Level.WARNING, Level.PROBLEM)]
    assert [each for each in trouble if not each.advice] == []


async def test_what_waits_is_counted_by_queue_and_type(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 3, type="a", queue="mail")
    await enqueue(store, 2, type="b", queue="mail")
    await enqueue(store, 1, type="a", queue="images")
    await enqueue(store, 4, type="a", queue="mail", delay=DAY)
    census = await census_of(store, clock)
    assert waiting(census) == {
        ("mail", "a", True): 3,
        ("mail", "b", True): 2,
        ("images", "a", True): 1,
        ("mail", "a", False): 4,
    }
    assert census.counted_all


async def test_a_delayed_job_is_due_when_its_time_has_come(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 1, type="a", delay=10 * SECOND)
    clock.advance(11 * SECOND)
    assert waiting(await census_of(store, clock)) == {("default", "a", True): 1}


async def test_parked_jobs_wait_and_running_and_finished_ones_do_not(store: Store, clock: ManualClock) -> None:
    for status in (Status.RUNNING, Status.COMPLETED, Status.CANCELLED, Status.DEAD):
        await put(store, status, type="done")
    await put(store, Status.FAILED, type="failed")
    # Last: while another worker is alive, the parked ones stay where they are.
    await put(store, Status.BLOCKED, type="parked", queue="odd")
    census = await census_of(store, clock)
    assert waiting(census) == {("default", "failed", False): 1, ("odd", "parked", False): 1}
    assert [each.type for each in census.waiting if each.parked] == ["parked"]
    assert census.dead == 1


async def test_live_workers_paused_queues_and_the_coordinator_are_named(store: Store, clock: ManualClock) -> None:
    await store.workers.beat(worker_info("w1", types=("a", "b"), queues=("mail",)))
    await store.queues.pause("mail", None)
    await store.queues.pause("images", 10 * SECOND)
    assert await store.leader.campaign(Campaign("w1", LEASE)) == 1
    census = await census_of(store, clock)
    assert [(each.id, each.types) for each in census.workers] == [("w1", ("a", "b"))]
    assert sorted(census.paused) == ["images", "mail"]
    assert census.coordinator == "w1"
    await store.leader.resign("w1")
    await store.workers.unregister("w1")
    clock.advance(11 * SECOND)
    census = await census_of(store, clock)
    assert (census.workers, census.paused, census.coordinator) == ((), ("mail",), None)


async def test_late_leases_are_counted_with_their_jobs_and_not_rescued(store: Store, clock: ManualClock) -> None:
    for number in range(2):
        await running(store, "gone", type=f"t{number}")
    await open_lease(store, "idle")
    await let_lapse(store, clock)
    for _ in range(2):
        census = await census_of(store, clock)
        assert (census.late_runners, census.late_jobs) == (2, 2)


async def test_the_newest_moment_follows_what_is_written(store: Store, clock: ManualClock) -> None:
    await enqueue(store)
    written = clock.wall()
    clock.jump_wall(-DAY)
    census = await census_of(store, clock)
    assert (census.newest, census.now) == (written, written - DAY)


async def test_schedules_are_named_as_they_are(store: Store, clock: ManualClock) -> None:
    for name in ("b", "a"):
        await add(store, name)
    await store.schedules.pause("b")
    assert (await census_of(store, clock)).schedules == tuple(await store.schedules.list())


async def test_examining_changes_nothing(store: Store, clock: ManualClock) -> None:
    for status in Status:
        await put(store, status)
    counts = await store.operator.counts()
    assert await census_of(store, clock) == await census_of(store, clock)
    assert (await examine(store.address, clock=clock, deep=True)).census is not None
    assert await store.operator.counts() == counts


async def test_a_store_of_no_known_kind_is_a_wrong_call() -> None:
    with pytest.raises(ConfigError, match="unknown store 'mysql'"):
        await examine("mysql://db/x")


async def test_in_depth_keys_of_live_jobs_and_of_windows_are_no_problem(store: Store, clock: ManualClock) -> None:
    await enqueue(store, idempotency_key="pending")
    await enqueue(store, idempotency_key="scheduled", delay=DAY)
    first = await running(store, idempotency_key="ended", queue="q")
    await settle(store, completed(first))
    second = await running(store, "r2", idempotency_key="window", idempotency_window=DAY, queue="q")
    await settle(store, completed(second))
    await running(store, "r3", idempotency_key="running", queue="q")
    found = [each for each in (await examine(store.address, clock=clock, deep=True)).findings if each.check == KEYS]
    assert [(each.level, each.says) for each in found] == [
        (Level.OK, "each of 4 keys belongs to a live job, or to a window that is open")
    ]
