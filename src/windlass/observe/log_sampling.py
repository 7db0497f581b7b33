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


def sample_failures(emit: Emit) -> Emit:
    """The same listener, which receives repeated failures as one count per window."""
    seen: dict[Kind, int] = {}

    def sampled(event: Event) -> None:
        if not isinstance(event, AttemptEnded) or event.status not in (Status.FAILED, Status.DEAD):
            emit(event)
            return
        kind = Kind(event.type, event.queue, event.status, (event.error or "").partition(":")[0])
        if kind not in seen and not _start(kind):
            emit(event)
            return
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= MAX_ALIKE:
            emit(event)

    def _start(kind: Kind) -> bool:
        """Open a window for a kind; False: there is no event loop to end it, or there are too many."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if len(seen) >= MAX_KINDS:
            return False
        loop.call_later(WINDOW, end, kind)
        return True

    def end(kind: Kind) -> None:
        more = seen.pop(kind) - MAX_ALIKE
        if more > 0:
            emit(FailuresRepeated(**kind._asdict(), times=more, duration=WINDOW))

    return sampled
