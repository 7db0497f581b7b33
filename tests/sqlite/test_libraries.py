"""One SQLite library per process and file: two lose accepted jobs, so the second one is refused."""

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from tests.support.seed import enqueue_one, look, status_of
from windlass.core.status import Status
from windlass.errors import ConfigError
from windlass.store.open import open_store


@pytest.fixture
def notes(path: Path) -> Path:
    """A database with a table of the user's own."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
        connection.commit()
    return path


def enqueue_jobs(path: Path, mode: str) -> list[str]:
    """What tests/sqlite/losing.py says before it ends."""
    words = [sys.executable, "-m", "tests.sqlite.losing", str(path), mode]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout.splitlines()


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    """A Python program with the file as its argument."""
    words = [sys.executable, "-c", code, str(path)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


async def stored(path: Path, id_: str) -> bool:
    store = open_store(f"sqlite:///{path}")
    try:
        return (await store.operator.get([id_]))[0] is not None
    finally:
        await store.close()


async def test_a_job_that_was_accepted_is_lost_when_two_libraries_share_the_file(notes: Path) -> None:
    other, accepted = enqueue_jobs(notes, "unguarded")
    assert other == "wrote", "another process could write while our transaction held the write lock"
    assert not await stored(notes, accepted.removeprefix("accepted ")), "nothing was lost: why refuse?"


async def test_with_one_library_the_lock_holds_and_the_job_is_kept(notes: Path) -> None:
    other, accepted = enqueue_jobs(notes, "alone")
    assert other == "locked out"
    assert await stored(notes, accepted.removeprefix("accepted "))


async def test_the_second_library_is_refused_and_told_what_to_do(notes: Path) -> None:
    (reported,) = enqueue_jobs(notes, "guarded")
    assert reported.startswith(f"refused: {notes} is a Windlass store that is open in this process through apsw")
    assert "?driver=sqlite3" in reported


@pytest.mark.parametrize("spelling", ["str", "bytes", "Path", "uri", "link"])
async def test_however_the_file_is_called_sqlite3_is_refused(path: Path, spelling: str) -> None:
    store = open_store(f"sqlite:///{path}?durability=relaxed")
    await enqueue_one(store)
    link = path.with_name("link")
    link.hardlink_to(path)
    names: dict[str, str | bytes | Path] = {
        "str": str(path),
        "bytes": os.fsencode(path),
        "Path": path,
        "uri": f"{path.as_uri()}?mode=ro",
        "link": str(link),
    }
    with pytest.raises(ConfigError, match="must not open it too"):
        sqlite3.connect(names[spelling], uri=spelling == "uri")
    await enqueue_one(store)
    await store.close()


async def test_other_files_and_memory_are_ignored(path: Path, tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{path}?durability=relaxed")
    await enqueue_one(store)
    for name in (":memory:", "", tmp_path / "other.db"):
        sqlite3.connect(name).close()
    assert await status_of(store, await enqueue_one(store)) is Status.PENDING
    await store.close()


async def test_after_closing_any_process_may_open_the_file(path: Path) -> None:
    store = open_store(f"sqlite:///{path}?durability=relaxed")
    id_ = await enqueue_one(store)
    await store.signals.has_work(["default"], None)
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT id FROM windlass_jobs").fetchall() == [(id_,)]


async def test_a_file_that_took_the_others_place_may_be_opened(path: Path) -> None:
    store = open_store(f"sqlite:///{path}?durability=relaxed")
    await enqueue_one(store)
    os.unlink(path)
    other = sqlite3.connect(path)
    assert other.execute("SELECT count(*) FROM sqlite_schema").fetchall() == [(0,)], "another file, and empty"
    other.close()
    await store.close()


async def test_apsw_is_refused_while_other_code_has_the_file_open(path: Path) -> None:
    connection = sqlite3.connect(path)
    store = open_store(f"sqlite:///{path}?durability=relaxed")
    with pytest.raises(ConfigError, match=r"already open in this process .*driver=sqlite3"):
        await enqueue_one(store)
    with pytest.raises(ConfigError):
        await store.operator.counts()
    connection.close()
    assert await enqueue_one(store), "what is closed is harmless"
    await store.close()


async def test_two_stores_in_one_process_use_the_same_library_or_the_second_is_refused(path: Path) -> None:
    for first, second in (("apsw", "sqlite3"), ("sqlite3", "apsw")):
        one = open_store(f"sqlite:///{path}?durability=relaxed&driver={first}")
        other = open_store(f"sqlite:///{path}?durability=relaxed&driver={second}")
        await enqueue_one(one)
        with pytest.raises(ConfigError, match=f"already open in this process through {first}"):
            await enqueue_one(other)
        await one.close()
        assert await enqueue_one(other)
        await other.close()


async def test_sqlite3_is_refused_while_other_code_has_the_file_open_through_apsw(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE notes (text TEXT)")
    store = open_store(f"sqlite:///{path}?durability=relaxed&driver=sqlite3")
    with pytest.raises(ConfigError, match="through apsw"):
        await enqueue_one(store)
    connection.close()
    assert await enqueue_one(store)
    await store.close()


async def test_the_same_library_may_be_used_by_other_code(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE notes (text TEXT)")
    store = open_store(f"sqlite:///{path}?durability=relaxed")
    id_ = await enqueue_one(store)
    await store.close()
    connection.close()
    theirs = sqlite3.connect(path)
    store = open_store(f"sqlite:///{path}?durability=relaxed&driver=sqlite3")
    assert (await look(store, id_)).id == id_
    theirs.close()
    sqlite3.connect(path).close()
    await store.close()


async def test_another_process_may_use_the_other_library(path: Path) -> None:
    store = open_store(f"sqlite:///{path}?durability=relaxed")
    await enqueue_one(store)
    code = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM windlass_jobs'))"
    assert run(code, path).stdout == "(1,)\n"
    await store.close()


FORKS = """
import asyncio, os, sqlite3, sys
from windlass import App
app = App(f"sqlite:///{sys.argv[1]}?durability=relaxed")
@app.task
def work() -> None: ...
work.enqueue()
if (child := os.fork()) == 0:
    {child}
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
work.enqueue()
"""
CHILDREN = {
    "goes on with Windlass": "work.enqueue()",
    "reads with sqlite3 alone": "sqlite3.connect(sys.argv[1]).close()",
}


@pytest.mark.parametrize("child", CHILDREN)
def test_a_forked_child_that(path: Path, child: str) -> None:
    code = FORKS.replace("{child}", CHILDREN[child])
    reported = run(code, path)
    assert (reported.returncode, reported.stderr) == (0, "")


def test_a_forked_child_that_does_both_is_refused(path: Path) -> None:
    code = FORKS.replace("{child}", "work.enqueue(); sqlite3.connect(sys.argv[1])")
    reported = run(code, path)
    assert "must not open it too" in reported.stderr


async def test_a_descriptor_that_only_holds_the_name_is_no_other_library(notes: Path) -> None:
    descriptor = os.open(notes, os.O_PATH)
    store = open_store(f"sqlite:///{notes}")
    try:
        assert await status_of(store, await enqueue_one(store)) is Status.PENDING
    finally:
        await store.close()
        os.close(descriptor)
