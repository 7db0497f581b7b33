"""Signals that ask a worker to end, and which process acts on them.

systemd sends SIGTERM to every process of a service, a terminal sends SIGINT and SIGHUP to its foreground group.
The supervisor acts on them for all; processes in which handlers run ignore them until their runner stops them.
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
    """Call `stop` when a signal asks this process to end, and again at a second signal."""
    loop, last = asyncio.get_running_loop(), -SAME_REQUEST_SECONDS

    def hear(number: signal.Signals) -> None:
        nonlocal last
        first, now = last < 0, loop.time()
        # SIGHUP is never the second signal: systemd may send it right after SIGTERM.
        if now - last >= SAME_REQUEST_SECONDS and (first or number is not signal.SIGHUP):
            last = now
            stop()

    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            loop.add_signal_handler(number, functools.partial(hear, number))


def on_sigterm(stop: Callable[[], None]) -> None:
    """Call `stop` at SIGTERM, in a process that runs handlers; processes that they fork end as usual."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    _ours.append(signal.getsignal(signal.SIGTERM))


def ignore_in_this_process(*numbers: signal.Signals) -> None:
    """Ignore these signals in this process; its children get them as usual.

    This uses an empty function, because children would inherit SIG_IGN.
    """
    for number in numbers:
        signal.signal(number, _nothing)
        signal.siginterrupt(number, False)  # system calls of native code go on
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_restore)


def _nothing(number: int, frame: FrameType | None) -> None: ...


_held = threading.local()
_ours: list[object] = [_nothing]
"""Signal handlers of this process that forked children do not keep."""


def _hold() -> None:
    """Block signals during a fork, until the child has restored its handlers."""
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)


def _let_go() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _restore() -> None:
    """Restore the default signals in a forked child, such as one of `multiprocessing`.

    The child shares the event loop's wake-up socket: a signal to it would also arrive in this process, and end
    the runner.
    """
    signal.set_wakeup_fd(-1)
    for number in STOP_SIGNALS:
        if signal.getsignal(number) in _ours:
            signal.signal(number, signal.SIG_DFL)
    _let_go()
