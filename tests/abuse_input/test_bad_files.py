"""Files and addresses that cannot be a store: refused with what to do about it, nothing made, nothing harmed."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from tests.cli.conftest import terminal
from tests.cli.terminal import Terminal
from tests.faults.full import may_mount, small_disk
from windlass import App, ConfigError, EnqueueFailed, SchemaMismatch, Task, WindlassError

__all__ = ["terminal"]


def one_task(app: App) -> Task[[], None, None]:
    @app.task(type="t")
    def task() -> None: ...

    return task


def make(path: Path, *statements: str) -> None:
    """A store with one job in it, and what was done to it."""
    app = App(f"sqlite:///{path}")
    one_task(app).enqueue()
    app.close()
    database = apsw.Connection(str(path))
    for statement in statements:
        database.execute(statement)
    database.close()


def spoil(path: Path) -> None:
    """Overwrite everything behind the first page."""
    make(path)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))


FUTURE = "INSERT INTO windlass_schema (number, name) VALUES (9999, '9999_future')"
FILES: dict[str, tuple[Callable[[Path], object], type[WindlassError], str]] = {
    "72 newer schema": (
        lambda path: make(path, FUTURE),
        SchemaMismatch,
        r"the database has step 9999_future, which this version of Windlass cannot work with: upgrade Windlass \(pip",
    ),
    "72 table dropped": (
        lambda path: make(path, "DROP TABLE windlass_jobs"),
        EnqueueFailed,
        "jobs.db: no such table: (main.)?windlass_jobs",
    ),
    "72 half migrated": (
        lambda path: make(path, "DELETE FROM windlass_schema"),
        EnqueueFailed,
        "jobs.db: table windlass_jobs already exists",
    ),
    "75 not a database": (lambda path: path.write_text("Dear reader, " * 1000), EnqueueFailed, "is not an SQLite"),
    "75 damaged": (spoil, EnqueueFailed, "jobs.db is damaged; restore it from a back-up"),
    "75 a folder": (lambda path: path.mkdir(), EnqueueFailed, "jobs.db cannot be opened: "),
}


@pytest.mark.parametrize("row", FILES)
def test_a_file_that_is_no_store_of_ours_is_refused_and_left_alone(terminal: Terminal, row: str) -> None:
    spoil_file, error, problem = FILES[row]
    path = terminal.folder / "jobs.db"
    spoil_file(path)
    before = path.read_bytes() if path.is_file() else b""
    app = App(f"sqlite:///{path}", deadline=5)
    with pytest.raises(error, match=problem):
        one_task(app).enqueue()
    app.close()
    for words in (["enqueue", "t"], ["migrate"]):
        ran = terminal.run(*words, "--store", "sqlite:///jobs.db")
        if row == "72 table dropped" and words == ["migrate"]:
            continue  # its schema says that nothing is missing
        assert (ran.code, ran.out) == (1, ""), ran
        assert re.search(problem, ran.err), ran.err
        assert "Traceback" not in ran.err
    assert (path.read_bytes() if path.is_file() else b"") == before


ADDRESSES = {
    "71 unknown store": ("mysql://me:hunter2@db/x", "mysql://me:***@db/x: unknown store 'mysql'"),
    "71 a password with an @": ("mysql://me:hunter2@hunter2@db/x", "mysql://me:***@db/x: unknown store"),
    "71 a password as an option": ("mysql://db/x?password=hunter2&a=1", "mysql://db/x?password=***&a=1: unknown"),
    "71 a password for a file": ("sqlite://me:hunter2@db/x.db", "sqlite://me:***@db/x.db: write sqlite:///relative"),
    "71 a secret option": ("sqlite:///x.db?Password=hunter2", "unknown option 'Password'"),
    "71 bad option": (
        "sqlite:///x.db?speed=1",
        "unknown option 'speed'; there are durability, driver",
    ),
    "71 no file": ("sqlite:///", "names no file"),
    "71 no scheme": ("jobs.db", "jobs.db is not the address of a store"),
    "75 no folder": ("sqlite:///no/such/jobs.db", "there is no folder"),
}


@pytest.mark.parametrize("row", ADDRESSES)
def test_an_address_that_cannot_work_is_refused_without_its_password(terminal: Terminal, row: str) -> None:
    address, problem = ADDRESSES[row]
    before = sorted(terminal.folder.iterdir())
    app = App(address)
    with pytest.raises(ConfigError, match=re.escape(problem)) as caught:
        one_task(app).enqueue()
    app.close()
    ran = terminal.run("enqueue", "t", "--store", address)
    assert (ran.code, ran.out) == (2, "")
    assert problem in " ".join(ran.err.split())
    assert "hunter2" not in ran.err + str(caught.value) + repr(app)
    assert sorted(terminal.folder.iterdir()) == before


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own: root may read and write any file, but not on a disk that is read-only."""
    if not may_mount():
        pytest.skip("only root may mount a disk")
    with small_disk(tmp_path / "disk") as disk:
        make(disk.folder / "jobs.db")
        yield disk.folder


def test_a_folder_that_cannot_be_written_is_said(terminal: Terminal, mounted: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)
    check_read_only(terminal, mounted / "jobs.db", "cannot be opened: Read-only file system")


def test_a_file_that_cannot_be_written_is_said(terminal: Terminal, tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    make(path)
    # Immutable, because root may write any other file.
    if subprocess.run(["chattr", "+i", path], capture_output=True).returncode:
        pytest.skip("this user or file system cannot make a file immutable")
    try:
        check_read_only(terminal, path, "jobs.db cannot be written: check the permissions of the file and its folder")
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


def check_read_only(terminal: Terminal, path: Path, problem: str) -> None:
    app = App(f"sqlite:///{path}", deadline=5)
    with pytest.raises(EnqueueFailed, match=f"^nothing was stored: .*{re.escape(problem)}"):
        one_task(app).enqueue()
    app.close()
    ran = terminal.run("enqueue", "t", "--store", f"sqlite:///{path}")
    assert (ran.code, ran.out) == (1, "")
    assert problem in ran.err


def test_a_file_that_is_deleted_while_it_is_open_is_noticed_before_anything_is_acknowledged(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    task = one_task(app)
    task.enqueue()
    for file in tmp_path.glob("jobs.db*"):
        if file.is_file():
            file.unlink()
    with pytest.raises(EnqueueFailed, match=r"^nothing was stored: .*jobs\.db was deleted or replaced while"):
        task.enqueue()
    # The next process begins with an empty file.
    stored = task.enqueue()
    assert [job.id for job in app.jobs.list().items] == [stored.id]
    app.close()


def test_a_file_that_is_replaced_by_a_back_up_is_used_from_then_on(tmp_path: Path) -> None:
    make(tmp_path / "backup.db")
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    task = one_task(app)
    task.enqueue()
    for end in ("-wal", "-shm"):
        (tmp_path / f"jobs.db{end}").unlink()
    (tmp_path / "backup.db").rename(tmp_path / "jobs.db")
    with pytest.raises(EnqueueFailed, match="was deleted or replaced"):
        task.enqueue()
    task.enqueue()
    app.close()
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    assert app.stats.counts().totals["pending"] == 2
    app.close()
