"""What a run of tests starts goes with it, however it ends; a server that is not ours is only visited."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.meta.tree import ROOT
from tests.support.parts import extended
from tests.support.processes import Processes, command, processes, until
from tests.support.servers import folder as folders
from tests.support.servers import keeper
from tests.support.servers.places import VARIABLE
from tests.support.servers.postgres import PostgresServer

SAYS_WHERE = """
from tests.support.servers.folder import run_folder

def test_that_uses_a_server(postgres_url):
    print("FOLDER", run_folder())
    print("PLACE", postgres_url)
"""
THEN_WAITS = "    import signal; print('WAITING', flush=True); signal.pause()\n"


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Processes]:
    """Runs of tests in processes of their own."""
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {"PYTHONPATH": os.pathsep.join(paths), VARIABLE: ""}
    started = Processes(tmp_path, environment)
    yield started
    started.end()


def arguments(tmp_path: Path, body: str) -> list[str]:
    """One test file, run with the fixtures of the servers and nothing else of ours."""
    (tmp_path / "test_it.py").write_text(body)
    options = ["-s", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    return ["-m", "pytest", *options, "-p", "tests.support.servers.fixtures", str(tmp_path / "test_it.py")]


def said(output: str, word: str) -> str:
    """What follows a word in the output."""
    (line,) = [line for line in output.splitlines() if word in line.split()]
    return line.partition(word)[2].strip()


def test_a_run_that_ends_leaves_nothing(tmp_path: Path, runs: Processes) -> None:
    run = runs.start("run", *arguments(tmp_path, SAYS_WHERE))
    assert run.wait() == 0
    assert not Path(said(run.output, "FOLDER")).exists()
    assert keeper.servers_in(Path(said(run.output, "FOLDER"))) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, *extended([signal.SIGTERM])])
def test_a_run_that_is_ended_leaves_nothing(tmp_path: Path, runs: Processes, number: signal.Signals) -> None:
    run = runs.start("run", *arguments(tmp_path, SAYS_WHERE + THEN_WAITS))
    until(lambda: "WAITING" in run.output, "the server runs")
    folder = Path(said(run.output, "FOLDER"))
    assert keeper.servers_in(folder)
    run.send(number)
    run.wait()
    until(lambda: not keeper.servers_in(folder), "its server has ended")
    until(lambda: not folder.exists(), "its folder is gone")


def test_what_a_run_left_whose_keeper_was_killed_too_is_swept_by_the_next(tmp_path: Path, runs: Processes) -> None:
    run = runs.start("run", *arguments(tmp_path, SAYS_WHERE + THEN_WAITS))
    until(lambda: "WAITING" in run.output, "the server runs")
    folder = Path(said(run.output, "FOLDER"))
    os.kill(keeper_of(folder), signal.SIGKILL)
    run.kill()
    folders.sweep(folder.parent)
    assert keeper.servers_in(folder) == []
    assert not folder.exists()


def test_a_run_that_lives_is_not_swept(postgres_server: PostgresServer) -> None:
    folders.sweep(folders.run_folder().parent)
    assert postgres_server.address.execute("SELECT 1") == [(1,)]


def test_a_server_that_is_named_is_used_and_none_is_started(
    tmp_path: Path, runs: Processes, postgres_server: PostgresServer
) -> None:
    body = """
from tests.support.servers import folder
def test_that_uses_a_server(postgres_url):
    print("PLACE", postgres_url)
    assert folder.run_folder.cache_info().currsize == 0
"""
    run = runs.start("run", *arguments(tmp_path, body), environment={VARIABLE: postgres_server.dsn()})
    assert run.wait() == 0, run.output
    assert f"@127.0.0.1:{postgres_server.port}/" in said(run.output, "PLACE")
    assert postgres_server.address.execute("SELECT datname FROM pg_database WHERE datname LIKE 'windlass%%'") == []


def test_a_named_server_is_freed_of_what_a_killed_run_left(
    tmp_path: Path, runs: Processes, postgres_server: PostgresServer
) -> None:
    environment = {VARIABLE: postgres_server.dsn()}
    body = "def test_that_uses_a_server(postgres_url):\n" + THEN_WAITS
    run = runs.start("run", *arguments(tmp_path, body), environment=environment)
    until(lambda: "WAITING" in run.output, "it has a place")
    run.kill()
    count = "SELECT count(*) FROM pg_database WHERE starts_with(datname, 'windlass_test_')"
    assert postgres_server.address.execute(count) == [(1,)]
    busy = "SELECT count(*) FROM pg_stat_activity WHERE starts_with(application_name, 'windlass_test_')"
    until(lambda: postgres_server.address.execute(busy) == [(0,)], "the server has noticed")
    again = runs.start("again", *arguments(tmp_path, SAYS_WHERE.replace("FOLDER", "-")), environment=environment)
    assert again.wait() == 0, again.output
    assert postgres_server.address.execute(count) == [(0,)]


def keeper_of(folder: Path) -> int:
    """The process that waits for the end of a folder's run."""
    words = {keeper.__file__.encode(), bytes(folder)}
    (found,) = [pid for pid in processes() if words <= set(command(pid).split(b"\0"))]
    return found
