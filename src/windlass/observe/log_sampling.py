"""Failures that repeat: the first few of a kind are written, the others are counted."""

import asyncio
from typing import NamedTuple

from windlass.core.events import AttemptEnded, Emit, Event
from windlass.core.log_events import FailuresRepeated
from windlass.core.status import Status

MAX_ALIKE = 10
"""Failures of one kind that are written within WINDOW."""
WINDOW = 10.0
"""Seconds."""
MAX_KINDS = 1000


class Kind(NamedTuple):
    """Failures of one type with one class of error."""

    type: str
    queue: str
    status: Status
    error: str


class FailureSampling:
    """A listener that receives repeated failures as one count per window."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._seen: dict[Kind, int] = {}

    def __call__(self, event: Event) -> None:
        if not isinstance(event, AttemptEnded) or event.status not in (Status.FAILED, Status.DEAD):
            self._emit(event)
            return
        kind = Kind(event.type, event.queue, event.status, (event.error or "").partition(":")[0])
        if kind not in self._seen and not self._start(kind):
            self._emit(event)
            return
        self._seen[kind] = self._seen.get(kind, 0) + 1
        if self._seen[kind] <= MAX_ALIKE:
            self._emit(event)

    def flush(self) -> None:
        """The process ends: say what was only counted."""
        for kind in list(self._seen):
            self._end(kind)

    def _start(self, kind: Kind) -> bool:
        """Open a window for a kind; False: there is no event loop to end it, or there are too many."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if len(self._seen) >= MAX_KINDS:
            return False
        loop.call_later(WINDOW, self._end, kind)
        return True

    def _end(self, kind: Kind) -> None:
        more = self._seen.pop(kind, 0) - MAX_ALIKE
        if more > 0:
            self._emit(FailuresRepeated(**kind._asdict(), times=more, duration=WINDOW))
