"""The store contract, the part of those who wait for jobs to end: see upkeep.py for the other hints."""

from collections.abc import Callable, Collection
from typing import Protocol

from windlass.core.ids import JobId

Tell = Callable[[Collection[JobId]], None]
"""Called with jobs that may have ended: whoever waits for them looks."""


class Vigil(Protocol):
    """Tells whoever made it, on the event loop where it was made, of jobs that may have ended.

    What it says may come too often, or be lost with a connection: a look now and then is always enough.
    """

    @property
    def silence(self) -> str | None:
        """Why nothing is told now, in words; None if it is, as far as is known."""

    def watch(self, job: JobId, queue: str) -> None:
        """Tell of this job of this queue when it has ended, and once as soon as that is certain to be noticed: it may
        have ended before. Who looks and finds that it has not, or that it is in another queue, says this again."""

    def unwatch(self, job: JobId) -> None:
        """Nobody waits for it any more."""

    async def close(self) -> None:
        """Tell no more, and release what was needed for it."""
