"""Deadlines of those who wait for a lane: one timer for all of an event loop, not one for each.

Nearly every request is answered long before its deadline. A timer of its own would cost it more than its place in the
lane does.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from windlass.store.sqlite.request import Request

Expire = Callable[[Request[Any], float], None]


class _Line:
    """The requests of one loop that have the same time, in the order in which it ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, expire: Expire) -> None:
        self._loop = loop
        self._seconds = seconds
        self._expire = expire
        self._due: deque[tuple[float, Request[Any]]] = deque()
        self._armed = False

    def add(self, request: Request[Any]) -> None:
        due = self._due
        while due and due[0][1].answered:
            due.popleft()
        due.append((self._loop.time() + self._seconds, request))
        self._arm()

    def _arm(self) -> None:
        if self._due and not self._armed:
            self._armed = True
            self._loop.call_at(self._due[0][0], self._look)

    def _look(self) -> None:
        self._armed = False
        now = self._loop.time()
        while self._due and (self._due[0][0] <= now or self._due[0][1].answered):
            _, request = self._due.popleft()
            if not request.answered:
                self._expire(request, self._seconds)
        self._arm()


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
            line = lines[seconds] = _Line(loop, seconds, self._expire)
        line.add(request)
