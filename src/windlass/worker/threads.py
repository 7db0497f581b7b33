"""Dedicated threads for `def` handlers, fed by a queue: started as needed, never more than there are slots."""

import asyncio
import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable

from windlass.core.outcome import Outcome
from windlass.worker.run import run_sync
from windlass.worker.work import Work


class Threads:
    """Runs handlers and reports their outcomes to the loop, one wake-up for all that have gathered."""

    def __init__(self, most: int, ended: Callable[[Work, Outcome], None]) -> None:
        self._most = most
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._outcomes: deque[tuple[Work, Outcome]] = deque()
        self._told = False
        self._busy = 0
        self._count = 0

    def put(self, work: Work) -> None:
        """Run it in a thread; the caller has seen to it that a slot is free."""
        self._busy += 1
        if self._busy > self._count and self._count < self._most:
            self._count += 1
            # Daemons: a handler that never returns must not keep the process from ending.
            threading.Thread(target=self._serve, name=f"windlass-slot-{self._count}", daemon=True).start()
        self._waiting.put(work)

    def _serve(self) -> None:
        while True:
            work = self._waiting.get()
            # In a context of its own: what a handler sets must not be there for the next one.
            self._outcomes.append((work, contextvars.Context().run(run_sync, work)))
            if not self._told:
                self._told = True
                self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        # Cleared before looking: an outcome that comes while we look calls again.
        self._told = False
        while self._outcomes:
            work, outcome = self._outcomes.popleft()
            self._busy -= 1
            self._ended(work, outcome)
