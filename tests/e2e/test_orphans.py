"""A worker that is process 1 of a container, or a subreaper, is the parent of every orphan: none stays a zombie."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stage import Stage
from tests.support.processes import children, command, descendants, until

PR_SET_CHILD_SUBREAPER = 36
NAMESPACE = (
    "unshare",
    *(() if os.geteuid() == 0 else ("--user", "--map-root-user")),
    "--pid",
    "--fork",
    "--mount-proc",
)


def may_have_namespace() -> bool:
    """Whether the kernel gives us one; a subreaper stands for process 1 where it does not."""
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


def become_subreaper() -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@pytest.fixture(params=["subreaper", "process 1"])
def worker(den: Stage, request: pytest.FixtureRequest) -> Iterator[int]:
    """The process of a worker."""
    in_namespace = request.param == "process 1"
    if in_namespace and not may_have_namespace():
        pytest.skip("the kernel gives this user no process namespace: see the other case")
    words = [sys.executable, "-m", "windlass", "worker", "rogues:app", "--lease", "2s", "--drain", "5s"]
    with (den.folder / "worker.log").open("wb") as log:
        started = subprocess.Popen(
            [*NAMESPACE, "--kill-child", *words] if in_namespace else words,
            cwd=den.folder,
            env=den.processes.environment,
            stderr=log,
            preexec_fn=None if in_namespace else become_subreaper,
        )
    until(lambda: " is ready" in (den.folder / "worker.log").read_text(), "the worker is ready")
    yield children(started.pid)[0] if in_namespace else started.pid
    for pid in descendants(started.pid):
        with contextlib.suppress(ProcessLookupError):  # it has ended since
            os.kill(pid, signal.SIGKILL)
    started.kill()
    started.wait()


def zombies(parent: int) -> list[int]:
    return [pid for pid in children(parent) if " Z " in Path(f"/proc/{pid}/stat").read_text()]


def runners(worker: int) -> list[int]:
    return [pid for pid in children(worker) if b"windlass.worker.runner.process" in command(pid)]


def test_what_a_killed_runner_leaves_behind_is_reaped(den: Stage, worker: int) -> None:
    id_ = den.enqueue_one("leave_child_and_wait", how="setsid")
    den.until_started([id_])
    (runner,) = runners(worker)
    cells = [pid for pid in descendants(runner) if pid != runner]
    assert cells
    os.kill(runner, signal.SIGKILL)
    until(lambda: runners(worker) not in ([], [runner]), "another runner has come")
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in cells), "nothing is left of them")
    until(lambda: not zombies(worker), "no zombie is left")
    quick = den.enqueue_one("process.quick", what="")
    den.until_status(quick, "completed")
