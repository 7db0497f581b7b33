"""The moving picture: frame after frame on the terminal's other screen, until a key says enough."""

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

from windlass.cli.output import plain
from windlass.cli.top.frame import frame
from windlass.cli.top.snapshot import Snapshot
from windlass.errors import SchemaMismatch, StoreUnavailable

ENOUGH = frozenset(b"qQ\x03\x04")
LEAST_SHARE = 1.0
"""Between two looks at least as long as a look took: watching must not be what a slow store is busy with."""

Wait = Callable[[float], bool]
"""Waits so many seconds, or until a key is pressed: whether it was one that means enough."""


def watch(look: Callable[[], Snapshot], out: Console, interval: float) -> None:
    """Show what `look` finds, again and again. A store that goes away is waited for, and said to be away."""
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
                foot = plain(f"{error}; shown is {snapshot.at:%H:%M:%S}", "bold red")
            if waited((time.monotonic() - began) * LEAST_SHARE):
                return


def _foot(interval: float) -> Text:
    return Text(
        f"q quits; every {interval:g} s; rates over half a minute, times and failures over five", "dim", no_wrap=True
    )


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """The terminal is given back as it was, however we are ended."""

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
    """Keys as they are pressed; where there is no keyboard, only time passes."""
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
