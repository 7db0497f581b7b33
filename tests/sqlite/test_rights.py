"""What one user may do with a store, by the rights of its files; of several users: test_users.py."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.seed import nothing
from tests.support.users import ORDINARY, without_privileges
from windlass.client.app import App
from windlass.errors import JobNotFound, StoreUnavailable, WindlassError
from windlass.store.drive import drive
from windlass.store.open import open_store
from windlass.store.sqlite.liveness.liveness_lock import LivenessLocks

NO_JOB = "01a1e700-0000-7000-8000-000000000000"


@pytest.fixture
def path() -> Iterator[Path]:
    """A store of the user that `without_privileges` becomes, in a folder that every user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    file = folder / "jobs.db"
    assert use(file) == [""] * 3
    (folder / "jobs.db-live").mkdir()
    if os.geteuid() == 0:
        for each in [folder, *folder.iterdir()]:
            os.chown(each, ORDINARY, ORDINARY)
    try:
        yield file
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def use(path: Path) -> list[str]:
    """What each call says that is wrong; nothing if it is answered."""
    app = App(f"sqlite:///{path}")
    task = app.task(type="t")(nothing)
    try:
        return [attempt(call) for call in (lambda: app.jobs.get(NO_JOB), app.workers.list, task.enqueue)]
    finally:
        app.close()


def attempt(call: Callable[[], object]) -> str:
    try:
        call()
    except JobNotFound:
        return ""
    except WindlassError as error:
        return str(error).removeprefix("nothing was stored: ")
    return ""


def rights(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_lock_that_may_only_be_read_is_enough(path: Path) -> None:
    for ending in ("-turn", "-writers"):
        Path(f"{path}{ending}").chmod(0o444)
    path.chmod(0o600)
    assert without_privileges(lambda: use(path)) == [""] * 3


def test_locks_follow_the_rights_of_the_database_when_those_change(path: Path) -> None:
    """SQLite makes its own files anew; ours stay."""
    path.parent.chmod(0o2770)
    path.chmod(0o660)
    without_privileges(lambda: use(path))
    assert [rights(Path(f"{path}{ending}")) for ending in ("-turn", "-writers")] == [0o660, 0o660]
    without_privileges(lambda: LivenessLocks(Path(f"{path}-live")).take("r1"))
    assert rights(Path(f"{path}-live")) & 0o777 == 0o770


@pytest.mark.parametrize("ending", ["", "-turn", "-writers"])
def test_a_user_who_may_not_use_a_file_gets_the_name_of_its_owner(path: Path, ending: str) -> None:
    file = Path(f"{path}{ending}")
    file.chmod(0o000)
    owner = file.stat().st_uid
    reported = without_privileges(lambda: use(path))
    assert set(reported) == {
        f"{file} may not be {'written' if not ending else 'opened'} by this user: it belongs to user {owner} with "
        f"mode 0, this is user {owner}"
    }


def test_a_user_who_may_only_read_is_answered_and_writes_nothing(path: Path) -> None:
    path.chmod(0o444)
    *looks, enqueue = without_privileges(lambda: use(path))
    assert looks == ["", ""]
    assert enqueue.startswith(f"{path} may not be written by this user: it belongs to user")


def test_a_worker_does_not_wait_for_rights(path: Path) -> None:
    path.chmod(0o444)

    def beat() -> bool:
        store = open_store(f"sqlite:///{path}")
        with pytest.raises(StoreUnavailable, match=r"jobs\.db may not be written by this user") as refused:
            drive(store.workers.unregister("w1"))
        return refused.value.lasting

    assert without_privileges(beat) is True


def test_a_folder_that_may_not_be_written_is_named(path: Path) -> None:
    path.parent.chmod(0o555)
    reported = without_privileges(lambda: use(path))
    assert {each.partition(":")[0] for each in reported} == {
        f"the folder {path.parent} may not be written by this user"
    }


def test_a_file_of_locks_that_cannot_be_removed_stops_nothing(path: Path) -> None:
    live = Path(f"{path}-live")
    (live / "r1").touch()
    live.chmod(0o555)
    assert without_privileges(lambda: LivenessLocks(live).clear("r1")) is None
    live.chmod(0o000)
    assert without_privileges(lambda: LivenessLocks(live).alive("r1")) is None
    assert without_privileges(lambda: use(path)) == [""] * 3
