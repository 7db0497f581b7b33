"""Processes of several users on one file: what root makes beside it, the user of the file can use."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sqlite.test_rights import use
from tests.support.users import as_user, need_two_users
from windlass.store.sqlite.connection.write_turn import WriteTurn
from windlass.store.sqlite.liveness.liveness_lock import LivenessLocks

NOBODY = 65534

AS_NOBODY = """
import os, sys
from pathlib import Path
from windlass.errors import StoreUnavailable
from tests.sqlite.test_rights import use
from tests.support.users import as_user, need_two_users
from windlass.store.sqlite.liveness.liveness_lock import LivenessLocks
from windlass.store.sqlite.connection.write_turn import WriteTurn
os.setgroups([]); os.setgid(65534); os.setuid(65534)
path = Path(sys.argv[1])
liveness_locks = LivenessLocks(Path(f"{path}-live"))
"""


@pytest.fixture
def path() -> Iterator[Path]:
    """A database of the user nobody in its own folder; everything is made with a umask that shuts others out."""
    need_two_users()
    folder = Path(tempfile.mkdtemp())
    file = folder / "jobs.db"
    file.touch()
    file.chmod(0o640)
    for each in (folder, file):
        os.chown(each, NOBODY, NOBODY)
    before = os.umask(0o077)
    try:
        yield file
    finally:
        os.umask(before)
        shutil.rmtree(folder)


def as_nobody(path: Path, code: str) -> str:
    command = [sys.executable, "-c", AS_NOBODY + code, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_the_locks_of_roots_workers_are_seen_and_cleared_by_others(path: Path) -> None:
    liveness_locks = LivenessLocks(Path(f"{path}-live"))
    liveness_locks.take("r1")
    look = "print(liveness_locks.alive('r1')); liveness_locks.take('r2'); print(liveness_locks.alive('r2'))"
    assert as_nobody(path, look).split() == ["True", "True"]
    assert liveness_locks.alive("r2") is False
    assert as_nobody(path, "liveness_locks.clear('r1'); print(liveness_locks.alive('r1'))") == "None"


def test_a_lock_that_may_not_be_read_stops_no_rescue(path: Path) -> None:
    """Only its lease tells: else no dead runner of that user would be rescued for as long as that file is there."""
    live = Path(f"{path}-live")
    live.mkdir(mode=0o755)
    live.chmod(0o755)
    (live / "r1").touch(mode=0o600)
    assert as_nobody(path, "print(liveness_locks.alive('r1')); liveness_locks.clear('r1')") == "None"
    code = "try: liveness_locks.take('r2')\nexcept StoreUnavailable as error: print(error)"
    reported = (
        f"{live}/r2.new may not be created by this user in {live}: it belongs to user 0 with mode 755, this is user "
    )
    assert as_nobody(path, code) == reported + str(NOBODY)


def test_the_write_locks_have_the_rights_of_the_database(path: Path) -> None:
    turn = WriteTurn(path, first=False)
    for ending in ("-turn", "-writers"):
        found = os.stat(f"{path}{ending}")
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (NOBODY, NOBODY, 0o640)
    assert as_nobody(path, "turn = WriteTurn(path, first=False); turn.take(); turn.leave(); print(1)") == "1"
    turn.close()


ANNA, BORIS, GROUP = 1001, 1002, 1100


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A database in a folder of a group, as SQLite wants it; its two users shut others out by their umask."""
    need_two_users()
    use(tmp_path / "rehearsal.db")
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, ANNA, GROUP)
    folder.chmod(0o2770)
    try:
        yield folder / "jobs.db"
    finally:
        shutil.rmtree(folder)


def test_two_users_of_a_group_share_a_store(shared: Path) -> None:
    def works(user: int) -> list[str]:
        reported: list[str] = as_user(user, lambda: use(shared), umask=0o077, groups=(GROUP,))
        return reported

    assert works(ANNA) == [""] * 3
    shared.chmod(0o660)
    (problem,) = set(works(BORIS))
    reported = (
        f"{shared}-turn may not be opened by this user: it belongs to user {ANNA} with mode 600, this is user {BORIS}"
    )
    assert problem == reported
    # The user that made the locks opens them again, after a restart say, and from then on both may.
    assert works(ANNA) == works(BORIS) == works(ANNA) == [""] * 3


def test_workers_of_two_users_tell_the_dead_of_the_other(shared: Path) -> None:
    live = Path(f"{shared}-live")

    def works(user: int, work: Callable[[LivenessLocks], bool | None]) -> object:
        return as_user(user, lambda: work(LivenessLocks(live)), umask=0o077, groups=(GROUP,))

    works(ANNA, lambda liveness_locks: liveness_locks.take("a"))  # and dies
    works(BORIS, lambda liveness_locks: liveness_locks.take("b"))
    assert works(ANNA, lambda liveness_locks: liveness_locks.alive("b")) is False
    assert works(BORIS, lambda liveness_locks: liveness_locks.alive("a")) is False
    works(BORIS, lambda liveness_locks: liveness_locks.clear("a"))
    assert [each.name for each in live.iterdir()] == ["b"]
