"""Blobs in a directory: whole or not there, private, and nothing outside it is ever read."""

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.blobs.files import blobs, folders, grow_old
from windlass import ConfigError
from windlass.blobs.contract import BlobFailed, BlobKey
from windlass.blobs.directory import Directory, shard_of
from windlass.blobs.open import open_blobs
from windlass.core.ids import new_id

NAME = "payload.0001020304050607"
DATA = b"x" * 100_000


@pytest.fixture
def store(root: Path) -> Directory:
    return Directory(str(root))


@pytest.fixture
def key(store: Directory) -> BlobKey:
    """Of a blob that is there."""
    key = BlobKey(new_id(), NAME)
    store.put(key, DATA)
    return key


def place(root: Path, key: BlobKey) -> Path:
    return root / shard_of(key.job) / key.job / key.name


def test_what_was_put_is_got(store: Directory, root: Path, key: BlobKey) -> None:
    assert store.get(key, len(DATA)) == DATA
    assert blobs(root) == [place(root, key)]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells which file a descriptor is")
def test_all_of_it_is_flushed_before_a_put_returns(
    store: Directory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, os.rename

    def flush(descriptor: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def name(*args: Any, **folders: Any) -> None:
        done.append("rename")
        rename(*args, **folders)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "rename", name)
    key = BlobKey(new_id(), NAME)
    store.put(key, DATA)
    path = place(root, key)
    folders = [path.parent, path.parent.parent, root]
    assert done == [str(root.parent), str(path.with_name("." + NAME)), "rename", *map(str, folders)]


def test_only_its_owner_may_read_it(root: Path, key: BlobKey) -> None:
    path = place(root, key)
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, path.parent.parent, root)]
    assert modes == [0o600, 0o700, 0o700, 0o700]


def test_nothing_is_overwritten_by_a_second_put_of_the_same_job(store: Directory, key: BlobKey) -> None:
    store.put(BlobKey(key.job, "payload.ffffffffffffffff"), b"other")
    assert store.get(key, len(DATA)) == DATA


def test_no_more_is_read_than_was_asked_for(store: Directory, key: BlobKey) -> None:
    assert len(store.get(key, 10)) == 11


@pytest.mark.parametrize(
    ("job", "name"),
    [
        ("../../etc", "passwd"),
        ("..", NAME),
        (new_id(), "../" + NAME),
        (new_id(), "/etc/passwd"),
        (new_id(), "payload.000102030405060\0"),
        (new_id(), ""),
        (new_id().upper(), NAME),
        ("", NAME),
    ],
    ids=[str(place) for place in range(8)],
)
def test_a_key_that_is_none_of_ours_is_refused(store: Directory, root: Path, job: str, name: str) -> None:
    for attempt in (lambda: store.put(BlobKey(job, name), b""), lambda: store.get(BlobKey(job, name), 10)):
        with pytest.raises(BlobFailed, match="is not the key of a blob"):
            attempt()
    assert not root.exists()


def test_a_key_that_leads_outside_is_never_removed(store: Directory, tmp_path: Path, key: BlobKey) -> None:
    outside = tmp_path / "precious"
    outside.touch()
    with pytest.raises(BlobFailed):
        store.remove([BlobKey(key.job, "../../../precious")])
    with pytest.raises(BlobFailed):
        store.remove([BlobKey("../..", "precious")])
    store.drop([str(tmp_path), "..", "", key.job + "/.."])
    assert outside.exists()
    assert store.get(key, len(DATA)) == DATA


@pytest.mark.parametrize("part", ["file", "folder", "shard"])
def test_links_are_not_followed(store: Directory, root: Path, tmp_path: Path, key: BlobKey, part: str) -> None:
    secret = tmp_path / "secret"
    path = place(root, key)
    target = {"file": path, "folder": path.parent, "shard": path.parent.parent}[part]
    target.rename(secret)
    target.symlink_to(secret)
    with pytest.raises(BlobFailed, match="cannot be read"):
        store.get(key, len(DATA))
    if part != "file":
        with pytest.raises(BlobFailed, match="cannot be written"):
            store.put(BlobKey(key.job, "payload.ffffffffffffffff"), b"")
        with pytest.raises(BlobFailed, match="cannot be cleared"):
            store.drop([key.job])
    assert secret.exists()


def test_a_pipe_in_its_place_is_refused_at_once(store: Directory, root: Path, key: BlobKey) -> None:
    place(root, key).unlink()
    os.mkfifo(place(root, key))
    with pytest.raises(BlobFailed, match="is not a plain file"):
        store.get(key, len(DATA))


def test_a_blob_that_is_not_there_is_said_to_be_missing(store: Directory, root: Path, key: BlobKey) -> None:
    place(root, key).unlink()
    with pytest.raises(BlobFailed, match=r"is missing$"):
        store.get(key, len(DATA))
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(BlobFailed, match=f"is missing; there is no folder {root} here: is it mounted?"):
        store.get(key, len(DATA))


def test_a_folder_in_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    store = Directory(str(tmp_path / "mount" / "blobs"))
    with pytest.raises(BlobFailed, match="the folder that it should be in does not exist: make it, or mount it"):
        store.put(BlobKey(new_id(), NAME), DATA)
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_folder_should_be_is_said(root: Path) -> None:
    root.touch()
    with pytest.raises(BlobFailed, match="cannot be written: Not a directory"):
        Directory(str(root)).put(BlobKey(new_id(), NAME), DATA)


def test_removing_the_last_blob_of_a_job_removes_its_folder(store: Directory, root: Path, key: BlobKey) -> None:
    other = BlobKey(key.job, "result.0001020304050607")
    store.put(other, b"1")
    store.remove([key])
    assert blobs(root) == [place(root, other)]
    store.remove([other, other, key])
    assert folders(root) == []


def test_what_cannot_be_removed_keeps_nothing_else_from_being_removed(
    store: Directory, root: Path, key: BlobKey
) -> None:
    (place(root, key).parent / "a folder").mkdir()
    others = [BlobKey(new_id(), NAME) for _ in range(3)]
    for other in others:
        store.put(other, b"")
    with pytest.raises(BlobFailed, match="cannot be cleared"):
        store.drop([key.job, *(other.job for other in others)])
    assert blobs(root) == []


def test_a_walk_meets_every_blob_once_whatever_the_pages(store: Directory, root: Path) -> None:
    keys = sorted(BlobKey(new_id(), NAME) for _ in range(30))
    for key in keys:
        store.put(key, b"")
    (root / "lost+found").mkdir()
    (root / "ab").mkdir(exist_ok=True)
    (root / "ab" / "stranger").touch()
    for limit in (1, 7, 30, 100):
        met, after = [], None
        while True:
            page = store.page(after, limit)
            met += [kept.key for kept in page.blobs]
            after = page.after
            if after is None:
                break
        assert sorted(met) == keys


def test_a_walk_tells_ages(store: Directory, root: Path, key: BlobKey) -> None:
    grow_old(root, 1000)
    (kept,) = store.page(None, 10).blobs
    assert 1000 <= kept.age < 1100


def test_a_walk_of_nothing_is_over_at_once(store: Directory) -> None:
    assert store.page(None, 10).blobs == ()


@pytest.mark.parametrize(
    ("address", "folder"),
    [("blobs", "blobs"), ("./blobs", "blobs"), ("a/../b", "b"), ("a:b/c", None), ("./a:b/c", "a%3Ab/c")],
)
def test_a_relative_folder_is_taken_from_where_we_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, folder: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    if folder is None:
        with pytest.raises(ConfigError):
            open_blobs(address)
    else:
        assert open_blobs(address).address == f"file://{tmp_path}/{folder}"


def test_an_address_is_absolute_and_opens_the_same_place_again() -> None:
    for folder in ("/srv/shop", "/srv/100 %", "/srv/a#b?c"):
        address = open_blobs(folder).address
        assert address.startswith("file:///srv/")
        assert open_blobs(address).address == address


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("s3://bucket/key", "unknown blob store 's3'; this version has a folder"),
        ("file://host/folder", "write file:///absolute/folder"),
        ("file:folder", "write a folder"),
        ("file:///srv/a?b=c", "write file:///absolute/folder"),
        ("file:///", "names no folder"),
        ("/", "names no folder"),
        ("  ", "names no folder"),
        ("a\0b", "names no folder"),
        (Path("/srv"), "should be a string"),
    ],
)
def test_a_wrong_address_is_refused_with_what_to_write(address: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        open_blobs(address)
