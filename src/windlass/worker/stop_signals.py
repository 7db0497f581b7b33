"""Signals that ask a worker to end, and which process acts on them.

systemd sends SIGTERM to every process of a service, a terminal sends SIGINT and SIGHUP to its foreground group. The
supervisor acts on them for all; processes in which handlers run take no notice until their runner stops them.
"""

import asyncio
import functools
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SAME_REQUEST_SECONDS = 0.05
"""Signals within this time are one: `timeout` sends one to the process and one to its group."""


def on_stop_signals(stop: Callable[[], object]) -> None:
    """Call this when the running process is asked to end, and again at a second signal."""
    loop, last = asyncio.get_running_loop(), -SAME_REQUEST_SECONDS

    def hear(number: signal.Signals) -> None:
        nonlocal last
        first, now = last < 0, loop.time()
        # SIGHUP does not insist: systemd may send it right after SIGTERM.
        if now - last >= SAME_REQUEST_SECONDS and (first or number is not signal.SIGHUP):
            last = now
            stop()

    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            loop.add_signal_handler(number, functools.partial(hear, number))


def on_sigterm(stop: Callable[[], None]) -> None:
    """Call this at SIGTERM, in a process in which handlers run; what they fork gets it as usual."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    _ours.append(signal.getsignal(signal.SIGTERM))


def ignore_in_this_process(*numbers: signal.Signals) -> None:
    """These change nothing in this process; what it starts gets them as usual.

    A function that does nothing, not SIG_IGN: that one would be inherited by every program that a handler starts.
    """
    for number in numbers:
        signal.signal(number, _nothing)
        signal.siginterrupt(number, False)  # system calls of native code go on
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_restore)


def _nothing(number: int, frame: FrameType | None) -> None: ...


_held = threading.local()
_ours: list[object] = [_nothing]
"""What signals do in this process, and not in those forked from it."""


def _hold() -> None:
    """Until a forked child has its own way with signals, none must be lost in ours."""
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _let_go() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _restore() -> None:
    """A forked child, of `multiprocessing` for example, is to end when it is told to.

    It has our event loop's socket for signals too: what it got would count as sent to us, and end its runner.
    """
    signal.set_wakeup_fd(-1)
    for number in STOP_SIGNALS:
        if signal.getsignal(number) in _ours:
            signal.signal(number, signal.SIG_DFL)
    _let_go()
