"""The live view: frame after frame on the alternate screen, until a key ends it."""

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.live import Live
from rich.text import Text

from windlass.cli.output.tables import plain
from windlass.cli.top.frame import frame
from windlass.cli.top.snapshot import Snapshot
from windlass.errors import SchemaMismatch, StoreUnavailable

ENOUGH = frozenset(b"qQ\x03\x04")
MIN_SHARE = 1.0
"""The pause between two reads is at least as long as a read: the view must not load a slow store."""

Wait = Callable[[float], bool]
"""Waits this many seconds, or until a key is pressed; returns whether it was a quit key."""


def watch(look: Callable[[], Snapshot], out: Console, interval: float) -> None:
    """Show what `look` returns, again and again. During an outage of the store it says so and keeps trying."""
    snapshot = look()
    foot = _foot(interval)
    with _ended_by_signals(), _keys() as waited, Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            size = out.size
            live.update(frame(snapshot, size.width, size.height, foot), refresh=True)
            if waited(interval):
                return
            began = time.monotonic()
            try:
                snapshot, foot = look(), _foot(interval)
            except SchemaMismatch:
                raise
            except StoreUnavailable as error:
                foot = plain(f"{error}; shown as of {snapshot.at:%H:%M:%S}", "bold red")
            if waited((time.monotonic() - began) * MIN_SHARE):
                return


def _foot(interval: float) -> Text:
    return Text(
        f"q quits; every {interval:g} s; rates over half a minute, times and failures over five", "dim", no_wrap=True
    )


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Restores the terminal, also after a signal."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _keys() -> Iterator[Wait]:
    """Pressed keys; without a keyboard, only time passes."""
    if not sys.stdin.isatty():
        yield _only_time
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    try:
        yield lambda seconds: _pressed(keyboard, seconds)
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _only_time(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _pressed(keyboard: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while select.select([keyboard], [], [], max(0.0, until - time.monotonic()))[0]:
        pressed = os.read(keyboard, 64)
        if not pressed or ENOUGH & set(pressed):
            return True
    return False
