"""Peers and the processes that are watched."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windlass.bench import process
from windlass.bench.contest import BenchFailed, Peer, Served, find_peers


def test_without_a_python_for_them_peers_are_not_run() -> None:
    peers = find_peers(None)
    assert peers.huey.why_not == "not run: no --peers-python given"
    assert peers.dbos.why_not is not None


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert find_peers(tmp_path / "python").huey.why_not == f"not run: there is no {tmp_path / 'python'}"


def test_a_peer_that_cannot_be_imported_is_not_run(tmp_path: Path) -> None:
    # A Python of which nothing can be imported: any other may have the peers.
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert find_peers(broken).huey.why_not == "not run: not installed"


def test_a_python_of_an_environment_is_found_from_any_folder_and_stays_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").write_text("#!/bin/sh\necho 3.1\n")
    (tmp_path / "real").chmod(0o755)
    (tmp_path / "python").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    huey = find_peers(Path("python")).huey
    assert (huey.python, huey.title) == (tmp_path / "python", "Huey 3.1")


def test_a_peer_that_fails_is_an_error_that_says_what_it_said(tmp_path: Path) -> None:
    script = tmp_path / "peer.py"
    script.write_text("raise SystemExit('no queue today')")
    with pytest.raises(BenchFailed, match="Peer drain ended with code 1: no queue today"):
        Peer("Peer", script, Path(sys.executable)).run("drain", tmp_path, 1)


def test_a_process_that_ends_badly_is_an_error_that_says_what_it_said(tmp_path: Path) -> None:
    with Served([sys.executable, "-c", "raise SystemExit('oh dear')"], tmp_path, {}) as served:
        assert served.ends_within(30)
        with pytest.raises(BenchFailed, match="ended with code 1: oh dear"):
            served.check()


def test_a_process_is_not_left_behind_and_gets_none_of_our_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_WORKER_CONCURRENCY", "1")
    code = "import os, time; open('env', 'w').write(' '.join(os.environ)); os.rename('env', 'done'); time.sleep(600)"
    with Served([sys.executable, "-c", code], tmp_path, {"GIVEN": "1"}) as served:
        while not (tmp_path / "done").exists():
            assert not served.ends_within(0.01)
    names = (tmp_path / "done").read_text().split()
    assert "GIVEN" in names
    assert not [name for name in names if name.startswith("WINDLASS_")]
    with pytest.raises(ProcessLookupError):
        os.kill(served.pid, 0)


def test_processor_time_and_memory_of_a_tree_are_seen() -> None:
    began = process.usage(os.getpid())
    assert began is not None
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    ended = process.usage(os.getpid())
    assert ended is not None
    assert ended.cpu > began.cpu
    assert ended.resident > 1024 * 1024
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in process.tree(os.getpid())
        assert process.cpu_of_tree(os.getpid()) >= ended.cpu
    assert process.usage(child.pid) is None
