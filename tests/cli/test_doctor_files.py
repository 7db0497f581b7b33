"""windlass doctor on files that are damaged, closed, elsewhere or no store at all: it says so and changes nothing."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.cli.terminal import Terminal
from tests.cli.test_doctor import change, levels, says
from tests.faults.full import may_mount
from windlass.store.doctor import Finding, Level
from windlass.store.sqlite.address import Address, Driver
from windlass.store.sqlite.doctor.file_checks import (
    LONG_LOG_BYTES,
    check_file_system,
    check_log,
    check_versions,
    readers,
)

MEMORY = Path("/dev/shm")


def test_a_file_that_is_not_there_is_said_and_not_made(terminal: Terminal) -> None:
    ran = terminal.run("doctor", "--json", "--store", "sqlite:///typo.db")
    assert (ran.code, ran.json["healthy"]) == (1, False)
    assert says(ran, "problem") == f"there is no file {terminal.folder}/typo.db"
    ran = terminal.run("doctor", "--json", "--store", "sqlite:///no/such/typo.db")
    assert says(ran, "problem") == f"there is no folder {terminal.folder}/no/such"
    assert not list(terminal.folder.glob("typo*"))


def test_a_log_without_its_database_is_a_problem_of_its_own(terminal: Terminal) -> None:
    (terminal.folder / "lost.db-wal").write_bytes(b"x")
    assert "is missing, but its write-ahead log lost.db-wal is there" in says(
        terminal.run("doctor", "--json", "--store", "sqlite:///lost.db"), "problem"
    )


@pytest.mark.parametrize("content", [b"Dear reader, " * 1000, b"short", b"\0" * 5000])
def test_a_file_that_is_no_database_is_said_and_left_alone(terminal: Terminal, content: bytes) -> None:
    path = terminal.folder / "letter.db"
    path.write_bytes(content)
    ran = terminal.run("doctor", "--json", "--store", "sqlite:///letter.db")
    assert ran.code == 1
    assert "letter.db is not an SQLite database, or its beginning is damaged" in says(ran, "problem")
    assert path.read_bytes() == content


def test_a_folder_is_not_a_file(terminal: Terminal) -> None:
    (terminal.folder / "dir.db").mkdir()
    ran = terminal.run("doctor", "--json", "--store", "sqlite:///dir.db")
    assert says(ran, "problem") == f"{terminal.folder}/dir.db is not a file"


def test_an_empty_file_is_a_store_that_is_not_made_yet(terminal: Terminal) -> None:
    (terminal.folder / "new.db").touch()
    ran = terminal.ok("doctor", "--json", "--store", "sqlite:///new.db")
    assert "the schema does not exist yet" in says(ran, "warning")
    assert (terminal.folder / "new.db").stat().st_size == 0


def test_damage_behind_the_first_page_is_found_without_an_error_and_beside_what_is_sound(terminal: Terminal) -> None:
    terminal.enqueue()
    path = terminal.folder / "windlass.db"
    content = path.read_bytes()
    spoilt = content[:8192] + b"\xa5" * (len(content) - 8192)
    path.write_bytes(spoilt)
    ran = terminal.run("doctor", "--json")
    assert ran.code == 1
    assert "problem" in levels(ran, "integrity")
    assert "ok" in levels(ran, "versions")
    assert path.read_bytes() == spoilt
    assert "Traceback" not in terminal.run("doctor", "--deep").err


def test_an_index_that_disagrees_with_its_table_is_found_by_the_deep_check(terminal: Terminal) -> None:
    for _ in range(3):
        terminal.enqueue()
    database = apsw.Connection("windlass.db")
    # The schema is edited by hand: the index goes on without what is in the table.
    database.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    database.execute("PRAGMA writable_schema = 1")
    wrong = "replace(sql, '= ''running''', '= ''pending''')"
    database.execute(f"UPDATE sqlite_schema SET sql = {wrong} WHERE name = 'windlass_jobs_held'")
    database.close()
    ran = terminal.run("doctor", "--deep", "--json")
    assert ran.code == 1
    assert "the database is damaged: row 1 missing from index windlass_jobs_held" in says(ran, "problem")


def test_a_table_that_was_dropped_is_a_problem_and_the_rest_is_checked(terminal: Terminal) -> None:
    change(terminal.folder / "windlass.db", "DROP TABLE windlass_jobs")
    ran = terminal.run("doctor", "--json")
    assert (ran.code, levels(ran, "jobs"), levels(ran, "integrity")) == (1, ["problem"], ["ok"])
    assert "no such table" in says(ran, "problem")


def test_a_database_that_another_program_took_out_of_wal_mode_is_a_warning(terminal: Terminal) -> None:
    change(terminal.folder / "windlass.db", "PRAGMA journal_mode = DELETE")
    (terminal.folder / "windlass.db-journal").write_bytes(b"")
    assert levels(terminal.ok("doctor", "--json"), "journal") == ["warning"]
    (terminal.folder / "windlass.db-journal").unlink()


def test_several_names_of_one_file_are_reported(terminal: Terminal) -> None:
    (terminal.folder / "soft.db").symlink_to("windlass.db")
    ran = terminal.ok("doctor", "--json", "--store", "sqlite:///soft.db")
    assert "soft.db is a symbolic link to" in says(ran, "note")
    os.link(terminal.folder / "windlass.db", terminal.folder / "hard.db")
    assert "has 2 names (hard links)" in says(terminal.run("doctor", "--json"), "problem")


def test_a_file_that_is_mounted_by_itself_is_reported(terminal: Terminal) -> None:
    if not may_mount():
        pytest.skip("only root may mount")
    (terminal.folder / "mounted.db").touch()
    subprocess.run(["mount", "--bind", terminal.folder / "windlass.db", terminal.folder / "mounted.db"], check=True)
    try:
        ran = terminal.run("doctor", "--json", "--store", "sqlite:///mounted.db")
        assert "mounted.db is a mount point" in says(ran, "problem")
        refused = terminal.run("enqueue", "t", "--store", "sqlite:///mounted.db")
        assert (refused.code, refused.out) == (2, "")
        assert "mount the folder of the database instead" in " ".join(refused.err.split())
    finally:
        subprocess.run(["umount", "--lazy", terminal.folder / "mounted.db"], check=True)


# Rights: root may do everything, so another user looks.

AS_NOBODY = """
import contextlib, io, os, sys
from windlass.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()  # as root, so that all modules are loaded: the other user may not be able to read them
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
main()
"""


def as_other(folder: Path) -> dict[str, str]:
    """The problems that another user than the owner is told: {check: sentence}."""
    command = [sys.executable, "-c", AS_NOBODY, "doctor", "--json"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in ran.stderr, ran.stderr
    findings = json.loads(ran.stdout)["findings"]
    return {each["check"]: f"{each['says']}; {each['advice']}" for each in findings if each["level"] == "problem"}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A store that every user may use, in a folder that every user can get to."""
    if os.geteuid():
        pytest.skip("only root can become somebody else")
    folder = Path("/tmp") / f"windlass-rights-{os.getpid()}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    made = [sys.executable, "-m", "windlass", "migrate", "--store", "sqlite:///windlass.db"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True, timeout=60)
    for each in folder.iterdir():
        each.chmod(0o666)
    yield folder
    shutil.rmtree(folder)


def test_a_user_who_may_do_everything_has_no_problem(open_folder: Path) -> None:
    assert as_other(open_folder) == {}


def test_a_file_that_may_not_be_read_is_said_with_its_owner(open_folder: Path) -> None:
    (open_folder / "windlass.db").chmod(0o600)
    (reported,) = as_other(open_folder).values()
    assert "windlass.db may not be read; it belongs to user 0 with mode 600, this is user 65534" in reported


def test_a_file_a_companion_and_a_folder_that_may_not_be_written_are_all_said(open_folder: Path) -> None:
    (open_folder / "windlass.db").chmod(0o644)
    assert "windlass.db may not be written by this user" in as_other(open_folder)["rights"]
    (open_folder / "windlass.db").chmod(0o666)
    (open_folder / "windlass.db-turn").chmod(0o644)  # enough for a lock
    assert "rights" not in as_other(open_folder)
    (open_folder / "windlass.db-turn").chmod(0o600)
    assert "windlass.db-turn may not be opened by this user" in as_other(open_folder)["rights"]
    (open_folder / "windlass.db-turn").chmod(0o666)
    open_folder.chmod(0o755)
    assert "SQLite keeps its write-ahead log beside the file" in as_other(open_folder)["rights"]


def test_a_folder_that_may_not_be_entered_is_said(open_folder: Path) -> None:
    inner = open_folder / "inner"
    inner.mkdir(mode=0o700)
    command = [sys.executable, "-c", AS_NOBODY, "doctor", "--store", "sqlite:///inner/x.db"]
    ran = subprocess.run(command, cwd=open_folder, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "inner may not be entered" in ran.stdout


# The log.


def test_a_log_that_a_reader_holds_back_is_reported_with_the_reader(terminal: Terminal) -> None:
    path = terminal.folder / "windlass.db"
    reader, writer = apsw.Connection(str(path)), apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM windlass_jobs").fetchall()
    writer.execute("PRAGMA synchronous = OFF")
    writer.execute("CREATE TABLE ballast (x)")
    assert levels(terminal.ok("doctor", "--json"), "log") == ["ok"]
    for _ in range(LONG_LOG_BYTES // 2**23 + 1):
        writer.execute("INSERT INTO ballast VALUES (zeroblob(8388608))")
    ran = terminal.ok("doctor", "--json")
    assert levels(ran, "log") == ["warning"]
    assert "a transaction that stays open holds it back" in says(ran, "warning")
    if sys.platform == "linux":
        assert readers(path) == [os.getpid()]
        assert f"process {os.getpid()} (" in says(ran, "warning")
    reader.close()
    writer.close()
    assert [each.level for each in check_log(path)] == [Level.OK]


# The place.


@pytest.mark.skipif(not MEMORY.is_dir(), reason="there is no file system in memory here")
def test_a_store_in_memory_is_a_warning(terminal: Terminal) -> None:
    path = MEMORY / f"windlass-{os.getpid()}.db"
    try:
        terminal.ok("migrate", "--store", f"sqlite:///{path}")
        ran = terminal.ok("doctor", "--json", "--store", f"sqlite:///{path}")
        assert levels(ran, "file system") == ["warning"]
        assert "every job is lost when the machine stops" in says(ran, "warning")
    finally:
        for each in MEMORY.glob(f"{path.name}*"):
            each.unlink()


def place(folder: Path, kind: str, *, allowed: bool = False) -> Finding:
    """What is said of a folder on a file system of this kind."""
    device = os.stat(folder).st_dev
    mounts = folder / "mountinfo"
    mounts.write_text(f"36 35 {os.major(device)}:{os.minor(device)} / / rw - {kind} source rw\n")
    (finding,) = check_file_system(Address(folder / "jobs.db", allow_network_fs=allowed), mounts)
    return finding


def test_network_file_systems_are_problems_and_layers_of_containers_warnings(tmp_path: Path) -> None:
    kinds = {"nfs4": Level.PROBLEM, "cifs": Level.PROBLEM, "overlay": Level.WARNING, "ext4": Level.OK}
    assert {kind: place(tmp_path, kind).level for kind in kinds} == kinds
    assert place(tmp_path, "nfs4", allowed=True).level is Level.WARNING
    (unknown,) = check_file_system(Address(tmp_path / "jobs.db"), tmp_path / "nowhere")
    assert unknown.level is Level.NOTE


# Versions.


@pytest.mark.parametrize(
    ("library", "level"),
    [("3.51.2", "problem"), ("3.7.0", "problem"), ("3.40.1", "problem"), ("3.51.3", "ok"), ("3.6.23", "ok")],
)
def test_an_sqlite_that_can_corrupt_the_file_is_a_problem(library: str, level: str) -> None:
    (ours,) = check_versions(library=library, stdlib="3.51.3")
    assert (ours.level, f"SQLite {library}" in ours.says) == (level, True)


def test_an_affected_sqlite_in_python_itself_is_only_a_note() -> None:
    found = check_versions(library="3.52.0", stdlib="3.40.1")
    assert [each.level for each in found] == [Level.OK, Level.NOTE]


@pytest.mark.parametrize(("stdlib", "level"), [("3.40.1", Level.WARNING), ("3.51.3", Level.OK)])
def test_an_address_that_uses_the_sqlite_of_python_is_checked_with_that_one(stdlib: str, level: str) -> None:
    (ours,) = check_versions(Driver.SQLITE3, stdlib=stdlib)
    assert (ours.level, f"driver=sqlite3 uses SQLite {stdlib}" in ours.says) == (level, True)
