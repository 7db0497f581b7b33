"""Peers and the processes that are watched."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench.peer import STORE, Peer, PeerStore, find_peers
from bench.peer_entry import PeerEntry
from bench.targets import POSTGRES_PEERS, SQLITE_PEERS

from bench import peers, usage
from windlass.bench.process import BenchFailed, ChildProcess

HUEY = SQLITE_PEERS[0]
GRAPHILE = next(entry for entry in POSTGRES_PEERS if entry.node)
FAKE_HUEY = """
class SqliteHuey:
    def __init__(self, *names, **options):
        print(type(self).__name__, flush=True)
        raise SystemExit

class RedisHuey(SqliteHuey):
    pass
"""


def test_without_a_python_for_them_peers_are_not_run() -> None:
    assert {peer.skip_reason for peer in find_peers(POSTGRES_PEERS, None)} == {"not run: no --peers given"}


def test_an_environment_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert find_peers((HUEY,), tmp_path)[0].skip_reason == "not run: no environment huey"


def test_a_peer_that_cannot_be_imported_is_not_run(tmp_path: Path) -> None:
    # A Python of which nothing can be imported: any other may have the peers.
    broken = tmp_path / "huey" / "bin" / "python"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert find_peers((HUEY,), tmp_path)[0].skip_reason == "not run: not installed"


def test_a_peer_of_node_without_its_modules_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "graphile").mkdir()
    assert find_peers((GRAPHILE,), tmp_path)[0].skip_reason == "not run: not installed"


def test_a_python_of_an_environment_is_found_from_any_folder_and_stays_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "peers" / "huey" / "bin"
    home.mkdir(parents=True)
    (home / "real").write_text("#!/bin/sh\necho 3.1\n")
    (home / "real").chmod(0o755)
    (home / "python").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    (huey,) = find_peers((HUEY,), Path("peers"))
    assert (huey.launch[0], huey.title) == (str(home / "python"), "Huey 3.1")


def test_a_peer_that_fails_is_an_error_that_says_what_it_said(tmp_path: Path) -> None:
    script = tmp_path / "peer.py"
    script.write_text("raise SystemExit('no queue today')")
    with pytest.raises(BenchFailed, match="Peer drain ended with code 1: no queue today"):
        _peer(script).run("drain", PeerStore(tmp_path), 1)


def test_a_peer_gets_its_store_in_a_variable(tmp_path: Path) -> None:
    script = tmp_path / "peer.py"
    script.write_text(
        "import os, json, sys\n"
        f"print(json.dumps({{'version': os.environ['{STORE}'], 'jobs': int(sys.argv[3]), 'seconds': 2.0}}))"
    )
    said = _peer(script).run("drain", PeerStore(tmp_path, "postgresql://here/1"), 8)
    assert (said.version, said.rate) == ("postgresql://here/1", 4.0)


def _peer(script: Path) -> Peer:
    return Peer(PeerEntry(name="Peer", package="peer", script=""), (sys.executable, str(script)))


def test_a_process_that_ends_badly_is_an_error_that_says_what_it_said(tmp_path: Path) -> None:
    with ChildProcess([sys.executable, "-c", "raise SystemExit('oh dear')"], tmp_path, {}) as served:
        assert served.ends_within(30)
        with pytest.raises(BenchFailed, match="ended with code 1: oh dear"):
            served.raise_if_failed()


def test_a_process_is_not_left_behind_and_gets_none_of_our_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_WORKER_CONCURRENCY", "1")
    code = "import os, time; open('env', 'w').write(' '.join(os.environ)); os.rename('env', 'done'); time.sleep(600)"
    with ChildProcess([sys.executable, "-c", code], tmp_path, {"GIVEN": "1"}) as served:
        while not (tmp_path / "done").exists():
            assert not served.ends_within(0.01)
    names = (tmp_path / "done").read_text().split()
    assert "GIVEN" in names
    assert not [name for name in names if name.startswith("WINDLASS_")]
    with pytest.raises(ProcessLookupError):
        os.kill(served.pid, 0)


def test_processor_time_and_memory_of_a_tree_are_seen() -> None:
    began = usage.usage(os.getpid())
    assert began is not None
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    ended = usage.usage(os.getpid())
    assert ended is not None
    assert ended.cpu > began.cpu
    assert ended.resident > 1024 * 1024
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in usage.tree(os.getpid())
        assert usage.cpu_of_tree(os.getpid()) >= ended.cpu
    assert usage.usage(child.pid) is None


@pytest.mark.parametrize(
    ("address", "chosen"), [("sqlite:////nowhere/jobs.db", "SqliteHuey"), ("redis://127.0.0.1:1/0", "RedisHuey")]
)
def test_huey_uses_the_store_that_is_measured(tmp_path: Path, address: str, chosen: str) -> None:
    """A stand-in for its package shows which class the script makes."""
    (tmp_path / "huey.py").write_text(FAKE_HUEY)
    script = Path(peers.__file__).with_name(HUEY.script)
    ran = subprocess.run(
        [sys.executable, str(script), "fill", str(tmp_path), "0"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), STORE: address},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ran.stdout.split() == [chosen]
