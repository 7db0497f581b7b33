"""How many jobs to hold ready beyond the slots: as many as the next few milliseconds will use, and no more.

Slow jobs are never prefetched, so they never wait here while another worker is free. Fast ones come in
batches, so that a round trip is shared by hundreds.
"""

MOST_PREFETCHED = 1000
AHEAD_SECONDS = 0.05


class Pace:
    """Measures how fast this runner ends jobs."""

    def __init__(self) -> None:
        self._ended = 0
        self._at = 0.0
        self._rate = 0.0

    def measure(self, ended: int, now: float) -> None:
        """So many jobs have ended in all, at this moment (seconds of any steady clock)."""
        elapsed = now - self._at
        if self._at and elapsed > 0:
            rate = (ended - self._ended) / elapsed
            # Rises at once, falls by halves: a pause between batches is not a slow handler.
            self._rate = max(rate, self._rate / 2)
        self._ended, self._at = ended, now

    def slow(self) -> None:
        """Prefetched jobs got stuck: hold none until they flow again."""
        self._rate = 0.0

    @property
    def prefetch(self) -> int:
        """How many to hold beyond the free slots."""
        return min(MOST_PREFETCHED, int(self._rate * AHEAD_SECONDS))
