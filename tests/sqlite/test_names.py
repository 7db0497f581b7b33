"""One name for the database file: under a second one there are another log and other locks, so it is refused."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.full import may_mount
from tests.sqlite.children import HOLD_LOCK, HOLD_TURN, Child
from tests.sqlite.conftest import Open
from tests.support.seed import enqueue_one, new_job, running, status_of
from windlass.core.status import Status
from windlass.errors import ConfigError, InvalidOption, StoreUnavailable
from windlass.store.open import open_store
from windlass.store.sqlite.address import Driver
from windlass.store.sqlite.connection.files import second_name
from windlass.store.sqlite.liveness.liveness_lock import LivenessLocks
from windlass.store.sqlite.store import SqliteStore

BESIDE = ("-wal", "-shm", "-journal", "-turn", "-writers", "-live")


async def make(path: Path, driver: Driver) -> None:
    """A store with one job, closed again."""
    store = opened(path, driver)
    await enqueue_one(store)
    await store.close()


def opened(path: Path, driver: Driver) -> SqliteStore:
    store = open_store(f"sqlite:///{path}?driver={driver}&durability=relaxed")
    assert isinstance(store, SqliteStore)
    return store


@contextmanager
def bound(source: Path, target: Path) -> Iterator[None]:
    """A file or folder mounted at a second place, as `docker run -v source:target` does."""
    if not may_mount():
        pytest.skip("only root may mount")
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    subprocess.run(["mount", "--bind", source, target], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", target], check=True)


# Hard links.


async def test_a_file_with_two_names_is_refused_under_either(path: Path, driver: Driver) -> None:
    await make(path, driver)
    other = path.with_name("other.db")
    os.link(path, other)
    for name in (path, other):
        with pytest.raises(ConfigError, match=r"has 2 names \(hard links\)"):
            opened(name, driver)
    assert not list(path.parent.glob("other.db-*"))
    other.unlink()
    await make(path, driver)


async def test_a_second_name_that_is_made_while_the_file_is_open_is_refused_and_the_first_goes_on(
    opens: Open, path: Path, driver: Driver
) -> None:
    store = opens()
    await enqueue_one(store)
    os.link(path, path.with_name("other.db"))
    with pytest.raises(ConfigError, match="has 2 names"):
        opened(path.with_name("other.db"), driver)
    id_ = await enqueue_one(store)
    assert await status_of(store, id_) is Status.PENDING


async def test_a_file_that_is_replaced_by_one_with_two_names_is_refused(
    opens: Open, path: Path, driver: Driver
) -> None:
    store, backup = opens(), path.with_name("backup.db")
    await enqueue_one(store)
    await make(backup, driver)
    os.link(backup, path.with_name("new.db"))
    path.with_name("new.db").replace(path)
    for _ in range(3):
        with pytest.raises(StoreUnavailable) as caught:
            await enqueue_one(store)
        assert not caught.value.maybe_done
    assert "has 2 names" in str(caught.value)
    backup.unlink()
    await enqueue_one(store)


async def test_a_callers_connection_under_a_second_name_is_refused(path: Path) -> None:
    store = opened(path, Driver.SQLITE3)
    await enqueue_one(store)
    os.link(path, path.with_name("hard.db"))
    path.with_name("soft.db").symlink_to(path)
    with sqlite3.connect(path.with_name("hard.db")) as connection, pytest.raises(InvalidOption, match="has 2 names"):
        await store.jobs.enqueue_inside(connection, [new_job()], {})
    connection.close()
    with sqlite3.connect(path.with_name("soft.db")) as connection:
        await store.jobs.enqueue_inside(connection, [new_job()], {})
    connection.close()
    await store.close()


# Mounts.


@pytest.mark.parametrize("name", ["jobs.db", "with a space.db", "new\nline.db", "back\\slash.db"])
async def test_a_file_that_is_mounted_by_itself_is_refused_and_works_under_its_first_name(
    tmp_path: Path, name: str, driver: Driver
) -> None:
    path, folder = tmp_path / "jobs.db", tmp_path / "container"
    await make(path, driver)
    folder.mkdir()
    with bound(path, folder / name):
        with pytest.raises(ConfigError, match="is a mount point"):
            open_store(f"sqlite:///{folder / name}?driver={driver}".replace("\n", "%0A"))
        (tmp_path / "link.db").symlink_to(folder / name)
        with pytest.raises(ConfigError, match="is a mount point"):
            opened(tmp_path / "link.db", driver)
        await make(path, driver)
    assert os.listdir(folder) == [name]


@pytest.mark.parametrize("end", BESIDE)
async def test_a_mount_on_a_file_beside_the_store_is_refused(path: Path, driver: Driver, end: str) -> None:
    await make(path, driver)
    elsewhere = path.with_name("elsewhere")
    elsewhere.mkdir() if end == "-live" else elsewhere.touch()
    target = path.with_name(path.name + end)
    with bound(elsewhere, target), pytest.raises(ConfigError, match=f"{end} is a mount point"):
        opened(path, driver)


async def test_a_folder_that_is_mounted_at_two_places_is_one_store(tmp_path: Path, driver: Driver) -> None:
    (tmp_path / "here").mkdir()
    with bound(tmp_path / "here", tmp_path / "there"):
        here, there = opened(tmp_path / "here/jobs.db", driver), opened(tmp_path / "there/jobs.db", driver)
        with Child(HOLD_LOCK, f"sqlite:///{tmp_path}/there/jobs.db", "r1", "w1") as runner:
            runner.stop()
            job = await running(there, "r1")
            assert await status_of(here, job.id) is Status.RUNNING
            assert await here.leases.rescue(10) == []
        await enqueue_one(here)
        assert (await there.operator.counts()).totals["pending"] == 1
        await here.close()
        await there.close()


# Symbolic links.


@pytest.fixture(params=["the file", "its folder"])
def linked(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """A path, and another that leads to the same file through a symbolic link; there is no file yet."""
    (tmp_path / "real").mkdir()
    if request.param == "the file":
        (tmp_path / "link.db").symlink_to("real/jobs.db")
        return tmp_path / "real/jobs.db", tmp_path / "link.db"
    (tmp_path / "link").symlink_to("real")
    return tmp_path / "real/jobs.db", tmp_path / "link/jobs.db"


async def test_files_beside_the_store_are_beside_the_file_that_a_link_leads_to(
    linked: tuple[Path, Path], driver: Driver
) -> None:
    real, link = linked
    store = opened(link, driver)
    await enqueue_one(store)
    store.leases.hold_liveness_lock("r1")
    beside = {each.name for each in real.parent.iterdir()}
    assert beside == {"jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db-turn", "jobs.db-writers", "jobs.db-live"}
    assert not list(real.parent.parent.glob("link.db-*"))
    assert LivenessLocks(real.with_name("jobs.db-live")).alive("r1") is True
    await store.close()


async def test_a_stopped_process_under_one_name_keeps_its_job_under_the_other(
    linked: tuple[Path, Path], driver: Driver
) -> None:
    real, link = linked
    one, other = opened(real, driver), opened(link, driver)
    with Child(HOLD_LOCK, f"sqlite:///{real}", "r1") as runner:
        job = await running(one, "r1")
        runner.stop()
        assert await other.leases.rescue(10) == []
        assert await status_of(other, job.id) is Status.RUNNING
        runner.kill()
        assert [each.id for each in await other.leases.rescue(10)] == [job.id]
    await one.close()
    await other.close()


async def test_both_names_wait_for_the_same_turn(linked: tuple[Path, Path], driver: Driver) -> None:
    real, link = linked
    await make(real, driver)
    store = opened(link, driver)
    with Child(HOLD_TURN, f"{real}-turn"), pytest.raises(StoreUnavailable, match="did not answer"):
        await enqueue_one(store.with_timeout(0.1))
    await enqueue_one(store)
    await store.close()


async def test_a_link_that_leads_elsewhere_while_the_store_is_open_is_noticed_and_never_followed(
    tmp_path: Path, driver: Driver
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    await make(tmp_path / "two/jobs.db", driver)
    link = tmp_path / "current"
    link.symlink_to("one")
    store = opened(link / "jobs.db", driver)
    await enqueue_one(store)
    link.unlink()
    link.symlink_to("two")
    for _ in range(3):
        with pytest.raises(StoreUnavailable) as caught:
            await enqueue_one(store)
        assert not caught.value.maybe_done
    assert "leads to" in str(caught.value)
    await store.close()
    for folder in ("one", "two"):
        there = opened(tmp_path / folder / "jobs.db", driver)
        assert (await there.operator.counts()).totals["pending"] == 1
        await there.close()


def test_a_folder_that_may_not_be_entered_is_no_sign_of_a_second_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    for name in ("stat", "lstat", "open"):
        monkeypatch.setattr(os, name, refuse)
    assert second_name(Path("/closed/jobs.db")) is None
