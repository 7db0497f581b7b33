"""How often the write-ahead log is copied into the file: the faster it grows, the more often."""

from windlass.core.moments import SECOND, Micros

PAGES = 500
"""The desired length of the log at a checkpoint, which copies it in a few milliseconds."""
MAX_PAUSE: Micros = 10 * SECOND


class CheckpointPace:
    """When the next checkpoint is due."""

    def __init__(self) -> None:
        self._last: Micros = 0
        self._pause: Micros = 0

    def is_due(self, now: Micros) -> bool:
        """Whether the log now has about PAGES pages, if it has grown as fast as before."""
        return now - self._last >= self._pause

    def note(self, pages: int, now: Micros) -> None:
        """Record a checkpoint of a log of this length."""
        since = min(now - self._last, MAX_PAUSE)
        self._last, self._pause = now, min(since * PAGES // max(pages, 1), MAX_PAUSE)
