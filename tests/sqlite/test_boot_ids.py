"""Containers with a boot id of their own on one folder: a held lock proves the same kernel, whatever the ids say."""

from pathlib import Path

import pytest

from tests.sqlite.children import HOLD_LOCK, Child
from tests.sqlite.conftest import Open
from tests.support.clock import ManualClock
from tests.support.seed import LEASE, claim_ids, enqueue_one, let_lapse, open_lease, running, status_of, worker_info
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.clock import namespace_offset
from windlass.store.open import examine
from windlass.store.records import Campaign
from windlass.store.sqlite.address import Driver
from windlass.store.sqlite.liveness.liveness_lock import LivenessLocks
from windlass.store.sqlite.store import SqliteStore


class ContainerClock(ManualClock):
    """The same kernel and the same time since boot, under another boot id."""

    def __init__(self, host: ManualClock) -> None:
        super().__init__()
        self.boot = "boot id of a container"
        self._host = host

    def wall(self) -> int:
        return self._host.wall()

    def since_boot(self) -> int:
        return self._host.since_boot()


@pytest.fixture
def host(opens: Open, clock: ManualClock) -> SqliteStore:
    """The store as processes with the machine's own boot id see it."""
    return opens(clock=clock)


@pytest.fixture
def container(opens: Open, clock: ManualClock) -> SqliteStore:
    """The same file in a container."""
    return opens(clock=ContainerClock(clock))


def holding(path: Path, *holders: str) -> Child:
    """A process that holds the locks of these runners and workers."""
    return Child(HOLD_LOCK, f"sqlite:///{path}", *holders)


async def test_a_job_of_a_live_runner_is_not_rescued(
    host: SqliteStore, container: SqliteStore, path: Path, clock: ManualClock
) -> None:
    with holding(path, "r1", "w1"):
        job = await running(host, "r1")
        assert await container.leases.rescue(10) == []
        await let_lapse(host, clock)
        assert await container.leases.rescue(10) == []
        assert await status_of(host, job.id) is Status.RUNNING


async def test_a_lease_is_renewed_and_used_under_either_boot_id(
    host: SqliteStore, container: SqliteStore, path: Path
) -> None:
    with holding(path, "r1", "w1"):
        await open_lease(host, "r1")
        assert (await container.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)
        id_ = await enqueue_one(host)
        assert await claim_ids(container, "r1") == [id_]


async def test_a_runner_that_has_not_taken_its_lock_yet_is_known_by_that_of_its_supervisor(
    host: SqliteStore, container: SqliteStore, path: Path, clock: ManualClock
) -> None:
    with holding(path, "w1"):
        job = await running(host, "r1")
        assert await container.leases.rescue(10) == []
        await let_lapse(host, clock)
        assert [each.id for each in await container.leases.rescue(10)] == [job.id]


async def test_a_killed_runner_is_left_to_its_living_supervisor_for_one_lease(
    host: SqliteStore, container: SqliteStore, path: Path, clock: ManualClock
) -> None:
    with holding(path, "r1") as runner, holding(path, "w1"):
        job = await running(host, "r1")
        runner.kill()
        assert await container.leases.rescue(10) == []
        await let_lapse(host, clock)
        assert [each.id for each in await container.leases.rescue(10)] == [job.id]


async def test_an_orphan_has_until_the_end_of_its_lease(
    host: SqliteStore, container: SqliteStore, path: Path, clock: ManualClock
) -> None:
    with holding(path, "r1"), holding(path, "w1") as supervisor:
        job = await running(host, "r1")
        supervisor.kill()
        assert await container.leases.rescue(10) == []
        await let_lapse(host, clock)
        assert [each.id for each in await container.leases.rescue(10)] == [job.id]


async def test_when_runner_and_supervisor_are_killed_the_job_is_rescued_at_once(
    host: SqliteStore, container: SqliteStore, path: Path
) -> None:
    with holding(path, "r1", "w1") as worker:
        job = await running(host, "r1")
        worker.kill()
        assert [each.id for each in await container.leases.rescue(10)] == [job.id]


async def test_a_live_worker_is_listed_and_keeps_its_lock(
    host: SqliteStore, container: SqliteStore, path: Path
) -> None:
    with holding(path, "w1"):
        await host.workers.beat(worker_info("w1"))
        assert [each.id for each in await container.workers.list()] == ["w1"]
        assert await container.leader.campaign(Campaign("w2", DAY)) is not None
        assert [each.id for each in await container.workers.list()] == ["w1"]
        assert LivenessLocks(Path(f"{path}-live")).alive("w1") is True


async def test_the_leadership_stays_with_its_holder_for_as_long_as_it_was_taken(
    host: SqliteStore, container: SqliteStore, path: Path, clock: ManualClock
) -> None:
    with holding(path, "w1"):
        first = await host.leader.campaign(Campaign("w1", LEASE))
        assert first is not None
        assert await container.leader.campaign(Campaign("w2", LEASE)) is None
        clock.advance(LEASE)
        assert await container.leader.campaign(Campaign("w2", LEASE)) == first + 1


async def test_a_general_silence_gives_a_grace_to_leases_of_every_boot_id(
    host: SqliteStore, container: SqliteStore, path: Path, clock: ManualClock
) -> None:
    with holding(path, "w1"):
        await running(host, "r1")
        await open_lease(container, "r2", "w2")
        clock.advance(3 * LEASE)
        assert await container.leases.rescue(10) == []
        assert (await host.leases.renew("w1", ["r1"], LEASE)).kept == ("r1",)


async def test_doctor_takes_a_worker_whose_lock_is_held_for_one_of_this_machine(
    host: SqliteStore, path: Path, driver: Driver, clock: ManualClock
) -> None:
    clock.advance(60 * SECOND)
    with holding(path, "w1") as worker:
        await host.workers.beat(worker_info("w1"))
        assert await machine(path, driver, clock) == ["all workers are on this machine"]
        worker.kill()
        assert "another machine" in (await machine(path, driver, clock))[0]


async def machine(path: Path, driver: Driver, clock: ManualClock) -> list[str]:
    examination = await examine(f"sqlite:///{path}?driver={driver}", clock=ContainerClock(clock))
    return [each.says for each in examination.findings if each.check == "machine"]


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("monotonic           0         0\nboottime            0         0\n", 0),
        ("monotonic           7         8\nboottime      1000000         5\n", 1_000_000 * 10**9 + 5),
        ("boottime         -100         0\n", -100 * 10**9),
        ("", 0),
    ],
)
def test_the_offset_of_a_time_namespace_is_read(tmp_path: Path, text: str, nanoseconds: int) -> None:
    (tmp_path / "offsets").write_text(text)
    assert namespace_offset(tmp_path / "offsets") == nanoseconds


def test_without_time_namespaces_there_is_no_offset(tmp_path: Path) -> None:
    assert namespace_offset(tmp_path / "nothing") == 0
