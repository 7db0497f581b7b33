"""Deadlines of those who wait for a lane: one timer for all of an event loop, not one for each.

Nearly every request is answered long before its deadline. A timer of its own would cost it more than its place in the
lane does.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, ref

from windlass.store.sqlite.request import Request

Expire = Callable[[Request[Any], float], None]


class _Line:
    """The requests of one loop that have the same time, in the order in which it ends.

    It knows them by weak references, which end with the answer: a loop that has ended is not kept by its requests.
    """

    def __init__(self, seconds: float, expire: Expire) -> None:
        self._seconds = seconds
        self._expire = expire
        self._due: deque[tuple[float, ref[Request[Any]]]] = deque()
        self._armed = False

    def add(self, request: Request[Any], loop: asyncio.AbstractEventLoop) -> None:
        self._drop(0.0)
        self._due.append((loop.time() + self._seconds, ref(request)))
        self._arm(loop)

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._due and not self._armed:
            self._armed = True
            loop.call_at(self._due[0][0], self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._armed = False
        self._drop(loop.time())
        self._arm(loop)

    def _drop(self, now: float) -> None:
        """Forget those who have their answer; tell those whose time is over."""
        due = self._due
        while due:
            end, known = due[0]
            request = known()
            late = request is not None and not request.answered
            if late and end > now:
                return
            due.popleft()
            if late and request is not None:
                self._expire(request, self._seconds)


class Deadlines:
    """Watches requests of any number of event loops, each from its own loop."""

    def __init__(self, expire: Expire) -> None:
        self._expire = expire
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[float, _Line]] = WeakKeyDictionary()

    def watch(self, request: Request[Any], loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Call `expire` if the request has no answer after so many seconds."""
        lines = self._lines.get(loop)
        if lines is None:
            lines = self._lines[loop] = {}
        line = lines.get(seconds)
        if line is None:
            line = lines[seconds] = _Line(seconds, self._expire)
        line.add(request, loop)
