"""What all handlers of a process share: a cell in which one of them changed it is not used again."""

import locale
import os
import resource
import signal
import threading

MOST_THREADS_LEFT = 16
"""Threads may be a pool that is used again; so many more than at first are being left behind."""


class Surroundings:
    """As they were when the app had been loaded."""

    def __init__(self) -> None:
        self._first = _look()
        self._threads = threading.active_count()

    def intact(self) -> bool:
        """Whether the next handler finds what the first one found."""
        return threading.active_count() <= self._threads + MOST_THREADS_LEFT and _look() == self._first


def _look() -> tuple[object, ...]:
    mask = os.umask(0o077)
    os.umask(mask)
    return (
        _folder(),
        mask,
        os.environ.get("TZ"),
        locale.setlocale(locale.LC_ALL),
        [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        [resource.getrlimit(number) for number in _LIMITS],
    )


_LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it was removed
