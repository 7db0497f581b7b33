"""What a handler may know and say about the attempt it is in."""

from collections.abc import Generator
from typing import Protocol

from windlass.core.job import Claimed, Job, Progress
from windlass.errors import InvalidOption


class Link(Protocol):
    """The handler's line to its runner."""

    @property
    def cancelled(self) -> bool: ...

    def job(self) -> Job: ...

    def progress(self, progress: Progress) -> None: ...

    def log(self, text: str) -> None: ...


class Said:
    """Done already, and awaitable: `await ctx.progress(…)` in `async def`, plain `ctx.progress(…)` in `def`."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


class Context:
    """Passed to a parameter annotated `Context`.

    Progress and log lines are written in the background, at the latest with the attempt's outcome; the newest
    progress wins.
    """

    def __init__(self, claimed: Claimed, link: Link) -> None:
        self._claimed = claimed
        self._link = link

    @property
    def job(self) -> Job:
        """The job, as it was when it was claimed."""
        return self._link.job()

    @property
    def attempt(self) -> int:
        """The number of this execution, from 1; never used twice for one job."""
        return self._claimed.attempt

    @property
    def token(self) -> int:
        """The fencing token: give it to whatever you write to, and let it refuse smaller ones."""
        return self._claimed.attempt

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked this job to stop; a long handler looks now and then."""
        return self._link.cancelled

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> Said:
        """Say how far the work is."""
        for name, value in (("done", done), ("total", total)):
            if value is not None and not isinstance(value, int | float):
                raise InvalidOption(f"progress.{name}", f"must be a number, not {type(value).__name__}")
        self._link.progress(Progress(done, total, None if note is None else str(note)[:500]))
        return Said()

    def log(self, text: str) -> Said:
        """Keep a line with the job: the last 200 are shown by `windlass jobs show`."""
        self._link.log(str(text))
        return Said()
