"""The parts of cells: what they print, what they leave changed, and what came of them."""

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator

import msgspec
import pytest

from tests.services.parts import claimed
from tests.support.seed import nothing
from windlass import App
from windlass.core.jobs.retry import Exponential
from windlass.worker.handlers.process_main import MAX_THREADS_LEFT, ProcessGlobals, ProcessWork, RunnerConnection
from windlass.worker.handlers.process_protocol import MAX_LINE_LENGTH, MAX_LINES, CancelRequested, Close, Output, Run
from windlass.worker.processes import descendants, kill_marked, kill_tree, memory

MARK = "0123456789abcdef"


def output_of(*chunks: bytes) -> Output:
    output = Output()
    output.expect(MARK)
    for chunk in chunks:
        output.data_received(chunk)
    return output


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"one\ntw", b"o"], ["one", "two"]),
        (["käse\n".encode()[:2], "käse\n".encode()[2:]], ["käse"]),
        ([b"\xff\xfe\n"], ["��"]),
        ([b"\x1b[31mred\r\n"], ["\\x1b[31mred\\r"]),
        ([b""], []),
    ],
)
def test_lines_are_kept_as_they_were_printed(chunks: list[bytes], lines: list[str]) -> None:
    assert output_of(*chunks).take() == lines


def test_only_the_last_lines_are_kept_and_each_is_bounded() -> None:
    output = output_of(b"".join(b"%d\n" % number for number in range(10_000)))
    assert output.take() == [str(number) for number in range(10_000 - MAX_LINES, 10_000)]
    endless = output_of(*[b"x" * 65536] * 50)
    assert endless.take() == ["x" * MAX_LINE_LENGTH]
    long = output_of(b"y" * 65536 + b"\n").take()
    assert len(long[0]) <= MAX_LINE_LENGTH


@pytest.mark.parametrize("printed", [b"", b"said\n", b"said"])
@pytest.mark.parametrize("cut", [1, 5, 100])
def test_the_sentinel_ends_the_output_of_a_job_and_is_not_part_of_it(printed: bytes, cut: int) -> None:
    whole = printed + f"\n{MARK}\n".encode()
    output = output_of(whole[:cut], whole[cut:])
    assert output.complete.is_set()
    assert [line for line in output.take() if line] == (["said"] if printed else [])


def test_another_jobs_sentinel_ends_nothing() -> None:
    output = output_of(b"\nfedcba9876543210\n")
    assert not output.complete.is_set()


def test_output_after_the_sentinel_belongs_to_no_job() -> None:
    output = output_of(f"mine\n\n{MARK}\nfrom a thread that was left\n".encode())
    assert (output.complete.is_set(), output.take()) == (True, ["mine"])


@pytest.fixture
def surroundings() -> Iterator[ProcessGlobals]:
    folder, mask, handler = os.getcwd(), os.umask(0o022), signal.getsignal(signal.SIGUSR1)
    os.umask(mask)
    yield ProcessGlobals()
    os.chdir(folder)
    os.umask(mask)
    signal.signal(signal.SIGUSR1, handler)


def test_surroundings_are_intact_until_they_are_changed(surroundings: ProcessGlobals) -> None:
    assert surroundings.unchanged()
    os.chdir("/")
    assert not surroundings.unchanged()


def test_a_mask_or_a_signal_is_seen(surroundings: ProcessGlobals) -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    assert not surroundings.unchanged()
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    before = os.umask(0o111)
    assert not surroundings.unchanged()
    os.umask(before)
    assert surroundings.unchanged()


def test_some_threads_may_stay_but_not_ever_more(surroundings: ProcessGlobals) -> None:
    gate = threading.Event()
    threads = [threading.Thread(target=gate.wait) for _ in range(MAX_THREADS_LEFT + 1)]
    for thread in threads[:-1]:
        thread.start()
    assert surroundings.unchanged()
    threads[-1].start()
    assert not surroundings.unchanged()
    gate.set()
    for thread in threads:
        thread.join()


SLEEPER = "import time; time.sleep(600)"
NEST = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', '{SLEEPER}']); time.sleep(600)"


def gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for(look: object, seconds: float = 30) -> None:
    assert callable(look)
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_tree_ends_whole() -> None:
    root = subprocess.Popen([sys.executable, "-c", NEST], start_new_session=True)
    wait_for(lambda: descendants(root.pid))
    (child,) = descendants(root.pid)
    assert memory(child) > 0
    kill_tree(root.pid)
    assert root.wait() == -signal.SIGKILL
    wait_for(lambda: gone(child))
    assert (descendants(root.pid), memory(root.pid)) == ([], 0)
    kill_tree(root.pid)  # of what is gone already: nothing happens


def test_a_stray_is_found_by_its_environment_alone() -> None:
    mark = f"WINDLASS_HANDLER_PROCESS={uuid.uuid4().hex}"
    name, value = mark.split("=")
    marked = subprocess.Popen(
        [sys.executable, "-c", SLEEPER], start_new_session=True, env={**os.environ, name: value}
    )
    other = subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=True)
    kill_marked(mark)
    assert marked.wait() == -signal.SIGKILL
    assert other.poll() is None
    other.kill()
    other.wait()


@pytest.mark.parametrize(
    ("requests", "cancelled"),
    [(["run", "cancel"], True), (["cancel", "run"], False), (["run"], False)],
    ids=["for this job", "for the job before it", "none"],
)
def test_a_cancel_request_that_comes_before_the_handler_starts_counts(
    requests: list[str], cancelled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "_exit", lambda _: None)
    app = App("sqlite:///never-opened.db")
    app.task(type="t")(nothing)
    run = Run(claimed(type="t"), Exponential(), MARK)
    ours, theirs = socket.socketpair()
    with theirs:
        for each in requests:
            ours.sendall(msgspec.json.encode(run if each == "run" else CancelRequested()) + b"\n")
        ours.close()
        runner, jobs = RunnerConnection(theirs), queue.SimpleQueue[Run | Close]()
        runner._read(jobs)
        work = ProcessWork(run.job, app.registry.get("t"), -1, 0, started_on=0, runner=runner)
        runner.begin(work)
    assert work.cancelled is cancelled
