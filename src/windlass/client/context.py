"""What a handler may know and say about the attempt it is in."""

import math
from collections.abc import Generator
from typing import Protocol

from windlass.core.job import Claimed, Job, Progress
from windlass.core.text import cut, printable
from windlass.errors import InvalidOption

LONGEST_NOTE = 500
LONGEST_LINE = 1000


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
        for name, value in (("done", done), ("total", 0 if total is None else total)):
            if not _is_number(value):
                raise InvalidOption(f"progress.{name}", f"must be a finite number, not {value!r:.100}")
        share = (_number(done), None if total is None else _number(total))
        self._link.progress(Progress(*share, None if note is None else _text(note, LONGEST_NOTE)))
        return Said()

    def log(self, text: str) -> Said:
        """Keep a line with the job: the last 200 are shown by `windlass jobs show`."""
        self._link.log(_text(text, LONGEST_LINE))
        return Said()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < 2**63 and math.isfinite(value)


def _number(value: float) -> float:
    """A plain number: subclasses, such as those of numpy, are not JSON."""
    return int(value) if isinstance(value, int) else float(value)


def _text(text: object, limit: int) -> str:
    """Whatever a handler says, as text that every store can keep and every terminal can show."""
    return cut(printable(cut(str(text), limit)), limit)
