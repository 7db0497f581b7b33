"""windlass top on real workers: what they did is on the screen, and the terminal is given back."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store

OTHER_SCREEN, BACK = b"\x1b[?1049h", b"\x1b[?1049l"


def top(stage: Stage, *words: str) -> str:
    command = [sys.executable, "-m", "windlass", "top", "--store", stage.url, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@on_every_store
def test_what_a_worker_did_is_in_the_picture(stage: Stage) -> None:
    stage.enqueue("quick", 40)
    stage.enqueue_one("flaky", {"max_attempts": 1}, failures=9)
    assert stage.start_worker("--until-empty").wait() == 0
    shown = json.loads(top(stage, "--once", "--json"))
    (queue,) = [each for each in shown["queues"] if each["queue"] == "default"]
    (quick,) = [each for each in shown["types"] if each["type"] == "quick"]
    assert (queue["rates"]["completed"], queue["rates"]["failures"]) == (40, 1)
    assert (quick["rates"]["completed"], quick["rates"]["failures"]) == (40, 0)
    assert 0 < quick["rates"]["run"]["p50"] <= quick["rates"]["run"]["p99"] < 60
    assert 0 < quick["rates"]["wait"]["p50"] <= quick["rates"]["wait"]["p99"] < 60
    assert [each["type"] for each in shown["failures"]] == ["flaky"]
    text = top(stage, "--once")
    assert "completed 40" in text
    assert "no workers" in text


class Screen:
    """`windlass top` on a terminal of 80 by 24."""

    def __init__(self, url: str) -> None:
        self.mine, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        self.theirs = theirs
        self.before = termios.tcgetattr(theirs)
        environment = {**os.environ, "TERM": "xterm-256color"}
        command = [sys.executable, "-m", "windlass", "top", "--store", url, "--interval", "100ms"]
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        self.seen = b""

    def until(self, words: bytes) -> None:
        """Read what is drawn until these words are."""
        until = time.monotonic() + 30
        while words not in self.seen:
            assert time.monotonic() < until, self.seen[-2000:]
            self._read(0.5)

    def ended(self) -> int:
        """How it ended, with all that it drew read."""
        until = time.monotonic() + 30
        while self.process.poll() is None:
            assert time.monotonic() < until, self.seen[-2000:]
            self._read(0.1)
        while self._read(0):
            pass
        return self.process.returncode

    def _read(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self.mine], [], [], seconds)
        read = os.read(self.mine, 65536) if ready else b""
        self.seen += read
        return read

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.mine)
        os.close(self.theirs)


@pytest.fixture
def screen(stage: Stage) -> Iterator[Screen]:
    stage.enqueue_one("quick", {"queue": "first"})
    opened = Screen(stage.url)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("ending", "code"),
    [("q", 0), pytest.param("\x03", 0, marks=pytest.mark.extended), ("terminate", 143)],
    ids=["q", "Ctrl-C", "SIGTERM"],
)
def test_the_live_view_goes_on_until_it_is_ended_and_gives_the_terminal_back(
    stage: Stage, screen: Screen, ending: str, code: int
) -> None:
    screen.until(b"first")
    stage.enqueue_one("quick", {"queue": "second"})
    screen.until(b"second")
    assert termios.tcgetattr(screen.theirs) != screen.before, "keys come one by one"
    if ending == "terminate":
        screen.process.send_signal(signal.SIGTERM)
    elif ending == "\x03":
        screen.process.send_signal(signal.SIGINT)
    else:
        os.write(screen.mine, ending.encode())
    assert screen.ended() == code
    assert (screen.seen.count(OTHER_SCREEN), screen.seen.count(BACK)) == (1, 1)
    assert b"Traceback" not in screen.seen
    assert termios.tcgetattr(screen.theirs) == screen.before
