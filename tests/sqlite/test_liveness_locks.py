"""LivenessLocks: on one machine death is seen at once, and a stall is never taken for death."""

import os
from pathlib import Path

import pytest

from tests.sqlite.children import HOLD_LOCK, LOCK_AND_FORK, Child
from tests.sqlite.conftest import Open
from tests.support.clock import ManualClock
from tests.support.seed import LEASE, enqueue_one, let_lapse, open_lease, request, running, status_of, worker_info
from windlass.core.moments import DAY
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.records import Campaign
from windlass.store.sqlite.liveness.liveness_lock import LivenessLocks


@pytest.fixture
def locks(path: Path) -> LivenessLocks:
    """What a store on `path` sees."""
    return LivenessLocks(Path(f"{path}-live"))


def address(path: Path) -> str:
    return f"sqlite:///{path}"


def test_without_a_lock_a_process_is_neither_alive_nor_dead(locks: LivenessLocks) -> None:
    assert locks.alive("r1") is None


def test_a_process_with_a_lock_is_alive_until_it_is_killed_and_dead_at_once(path: Path, locks: LivenessLocks) -> None:
    with Child(HOLD_LOCK, address(path), "r1") as child:
        assert locks.alive("r1") is True
        child.kill()
        assert locks.alive("r1") is False


def test_a_stopped_process_is_alive(path: Path, locks: LivenessLocks) -> None:
    with Child(HOLD_LOCK, address(path), "r1") as child:
        child.stop()
        assert locks.alive("r1") is True


def test_a_forked_grandchild_does_not_keep_the_dead_alive(path: Path, locks: LivenessLocks) -> None:
    with Child(LOCK_AND_FORK, address(path), "r1") as child:
        assert locks.alive("r1") is True
        child.kill()
        assert locks.alive("r1") is False


def test_what_is_cleared_away_is_forgotten(path: Path, locks: LivenessLocks) -> None:
    with Child(HOLD_LOCK, address(path), "r1") as child:
        child.kill()
    locks.clear("r1")
    assert locks.alive("r1") is None


def test_a_released_lock_leaves_no_file(path: Path, locks: LivenessLocks) -> None:
    locks.take("r1")
    assert locks.alive("r1") is True
    assert LivenessLocks(Path(f"{path}-live")).alive("r1") is True
    locks.release("r1")
    locks.release("r1")
    assert locks.alive("r1") is None
    assert list(Path(f"{path}-live").iterdir()) == []


async def test_closing_a_store_releases_its_locks(opens: Open, locks: LivenessLocks) -> None:
    store = opens()
    store.leases.hold_liveness_lock("r1")
    store.leases.hold_liveness_lock("w1")
    await store.close()
    assert (locks.alive("r1"), locks.alive("w1")) == (None, None)


async def test_a_killed_runner_without_a_supervisor_is_rescued_before_its_lease_ends(
    opens: Open, path: Path, clock: ManualClock
) -> None:
    store = opens(clock=clock)
    with Child(HOLD_LOCK, address(path), "r1") as runner:
        job = await running(store, "r1")
        assert await store.leases.rescue(10) == []
        runner.kill()
        assert [each.id for each in await store.leases.rescue(10)] == [job.id]
    assert os.listdir(f"{path}-live") == []


async def test_a_killed_runner_is_left_to_its_living_supervisor_for_one_lease(
    opens: Open, path: Path, clock: ManualClock
) -> None:
    """The supervisor knows which jobs had started; a rescuer would have to guess."""
    store = opens(clock=clock)
    with Child(HOLD_LOCK, address(path), "r1") as runner, Child(HOLD_LOCK, address(path), "w1"):
        job = await running(store, "r1")
        runner.kill()
        assert await store.leases.rescue(10) == []
        await let_lapse(store, clock)
        assert [each.id for each in await store.leases.rescue(10)] == [job.id]


async def test_a_runner_with_a_lock_that_stalls_is_not_rescued_however_long(
    opens: Open, path: Path, clock: ManualClock
) -> None:
    store = opens(clock=clock)
    with Child(HOLD_LOCK, address(path), "r1", "w1") as runner:
        job = await running(store, "r1")
        runner.stop()
        for _ in range(3):
            await let_lapse(store, clock)
            assert await store.leases.rescue(10) == []
        clock.advance(DAY)
        assert await store.leases.rescue(10) == []
        assert await status_of(store, job.id) is Status.RUNNING
        assert (await store.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)


async def test_an_orphan_has_until_the_end_of_its_lease(opens: Open, path: Path, clock: ManualClock) -> None:
    """Its supervisor is dead, so nothing renews for it; it may finish, but not for ever."""
    store = opens(clock=clock)
    with Child(HOLD_LOCK, address(path), "r1"), Child(HOLD_LOCK, address(path), "w1") as supervisor:
        job = await running(store, "r1")
        supervisor.kill()
        assert await store.leases.rescue(10) == []
        await let_lapse(store, clock)
        assert [each.id for each in await store.leases.rescue(10)] == [job.id]


async def test_a_lock_that_cannot_be_opened_makes_the_store_unavailable(opens: Open, path: Path) -> None:
    store = opens()
    await open_lease(store, "r1")
    os.close(os.open(f"{path}-live", os.O_CREAT))
    with pytest.raises(StoreUnavailable, match="-live/r1 cannot be opened"):
        await store.leases.renew("w1", ["r1"], LEASE)


async def test_a_dead_runner_can_not_claim(opens: Open, path: Path) -> None:
    store = opens()
    await enqueue_one(store)
    with Child(HOLD_LOCK, address(path), "r1") as runner:
        await open_lease(store, "r1")
        runner.kill()
        assert await store.jobs.claim(request("r1")) == []


async def test_a_killed_worker_is_not_listed_and_a_stalled_one_is(
    opens: Open, path: Path, clock: ManualClock
) -> None:
    store = opens(clock=clock)
    with Child(HOLD_LOCK, address(path), "dead") as dead, Child(HOLD_LOCK, address(path), "stalled") as stalled:
        await store.workers.beat(worker_info("dead"))
        await store.workers.beat(worker_info("stalled"))
        dead.kill()
        stalled.stop()
        clock.advance(DAY)
        assert [each.id for each in await store.workers.list()] == ["stalled"]


async def test_the_leadership_of_a_killed_coordinator_is_free_at_once(opens: Open, path: Path) -> None:
    store = opens()
    with Child(HOLD_LOCK, address(path), "w1") as holder:
        first = await store.leader.campaign(Campaign("w1", DAY))
        assert first is not None
        assert await store.leader.campaign(Campaign("w2", DAY)) is None
        holder.kill()
        assert await store.leader.campaign(Campaign("w2", DAY)) == first + 1
