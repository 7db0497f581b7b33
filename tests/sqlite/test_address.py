"""sqlite:///file.db: its options, its problems, its file system, its durability."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.sqlite.conftest import Open
from windlass.errors import ConfigError, StoreUnavailable
from windlass.store.open import open_store, redact
from windlass.store.sqlite.address import Address, Driver, parse_address
from windlass.store.sqlite.connection.files import NETWORK, check_local, file_system_of
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.store import SqliteStore


def test_three_slashes_are_relative_and_four_absolute() -> None:
    assert parse_address("sqlite:///a/jobs.db") == Address(Path.cwd() / "a/jobs.db")
    assert parse_address("sqlite:////var/jobs.db") == Address(Path("/var/jobs.db"))


def test_options_are_read() -> None:
    address = parse_address("sqlite:////j.db?durability=relaxed&allow_network_fs=true&driver=sqlite3")
    assert (address.durability, address.allow_network_fs, address.driver) == ("relaxed", True, Driver.SQLITE3)
    assert parse_address("sqlite:////j.db").driver is Driver.APSW


def test_letters_that_a_url_cannot_hold_are_quoted() -> None:
    assert parse_address("sqlite:////my%20files/j%3F.db").path == Path("/my files/j?.db")


@pytest.mark.parametrize("path", ["/a/b.db", "/my files/ü?#%.db"])
@pytest.mark.parametrize("durability", ["full", "relaxed"])
@pytest.mark.parametrize("driver", list(Driver))
def test_an_address_survives_being_written_and_read(path: str, durability: str, driver: Driver) -> None:
    address = Address(Path(path), durability, True, driver)
    assert parse_address(address.url) == address


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite://jobs.db", "slashes"),
        ("sqlite:///", "names no file"),
        ("sqlite://", "names no file"),
        ("sqlite:////folder/", "names no file"),
        ("sqlite:///j.db?durability=none", "full or relaxed"),
        ("sqlite:///j.db?allow_network_fs=yes", "true or false"),
        ("sqlite:///j.db?driver=pysqlite", "driver is apsw or sqlite3, not 'pysqlite'"),
        ("sqlite:///j.db?mode=memory", "unknown option 'mode'"),
    ],
)
def test_an_address_that_cannot_work_is_refused(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_address(url)


def test_all_problems_of_an_address_are_listed_together() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_address("sqlite://host/?durability=x&allow_network_fs=y&a=1&b=2")
    assert len(refused.value.problems) == 6


def test_a_path_with_an_at_sign_is_shown_whole() -> None:
    assert redact("sqlite:////srv/a@b/jobs.db") == "sqlite:////srv/a@b/jobs.db"


def test_another_scheme_is_refused_without_its_password() -> None:
    with pytest.raises(ConfigError) as refused:
        open_store("mysql://root:secret@host/db")
    assert "secret" not in str(refused.value)
    assert redact("mysql://root:se@cret@host/db") == "mysql://root:***@host/db"


def test_a_folder_that_is_not_there_is_our_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no folder .*missing"):
        open_store(f"sqlite:///{tmp_path}/missing/jobs.db")


def test_a_lock_file_that_cannot_be_opened_is_our_error(tmp_path: Path) -> None:
    (tmp_path / "jobs.db-turn").mkdir()
    with pytest.raises(StoreUnavailable, match=r"jobs\.db-turn cannot be opened"):
        open_store(f"sqlite:///{tmp_path}/jobs.db")


async def synchronous(store: SqliteStore) -> int:
    def ask(db: Db) -> Any:
        return db.select("PRAGMA synchronous")[0][0]

    return int(await store._threads.write(ask, None))


async def test_every_commit_is_flushed_unless_relaxed(opens: Open) -> None:
    full, normal = 2, 1
    assert await synchronous(opens("")) == full
    assert await synchronous(opens("?durability=full")) == full
    assert await synchronous(opens("?durability=relaxed")) == normal


async def test_the_log_is_written_ahead(opens: Open) -> None:
    store = opens()
    assert await store._threads.write(lambda db: db.select("PRAGMA journal_mode"), None) == [("wal",)]


def mountinfo(folder: Path, target: Path, kind: str, source: str = "disk") -> Path:
    device = os.stat(folder).st_dev
    where = f"{os.major(device)}:{os.minor(device)}"
    file = target / "mountinfo"
    other = "20 1 0:999 / /proc rw,nosuid shared:5 - proc proc rw"
    file.write_text(f"{other}\n36 35 {where} / {folder} rw master:1 - {kind} {source} rw\n")
    return file


@pytest.mark.parametrize("kind", sorted(NETWORK))
def test_a_network_file_system_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ConfigError, match=f"on {kind}, a network file system"):
        check_local(tmp_path, mountinfo(tmp_path, tmp_path, kind))


SHARED = {
    "virtiofs": "of a virtual machine",
    "fakeowner": "Docker Desktop",
    "fuse.grpcfuse": "Docker Desktop",
    "vmhgfs": "VMware, by the kernel",
    "fuse.vmhgfs-fuse": "VMware",
    "gpfs": "IBM Storage Scale",
    "fuse.juicefs": "JuiceFS",
    "fuse.blobfuse2": "Azure",
    "fuse.mount-s3": "Amazon",
    "fuse.ceph-fuse": "Ceph, not by the kernel",
}


@pytest.mark.parametrize("kind", SHARED)
def test_a_folder_shared_by_other_means_is_refused_too(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ConfigError, match=f"on {kind}, a network file system"):
        check_local(tmp_path, mountinfo(tmp_path, tmp_path, kind))


@pytest.mark.parametrize("source", ["mountpoint-s3", "blobfuse2", "gcsfuse"])
def test_a_file_system_in_user_space_without_a_name_is_known_by_its_source(tmp_path: Path, source: str) -> None:
    mounts = mountinfo(tmp_path, tmp_path, "fuse", source)
    with pytest.raises(ConfigError, match=f"on fuse.{source}, a network file system"):
        check_local(tmp_path, mounts)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "apfs", "fuse.bindfs", "fuseblk"])
def test_a_local_file_system_is_taken(tmp_path: Path, kind: str) -> None:
    mounts = mountinfo(tmp_path, tmp_path, kind)
    check_local(tmp_path, mounts)
    assert file_system_of(tmp_path, mounts) == kind


def test_a_system_that_does_not_tell_is_trusted(tmp_path: Path) -> None:
    check_local(tmp_path, tmp_path / "nothing")
    assert file_system_of(tmp_path, tmp_path / "nothing") is None
