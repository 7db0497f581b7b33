"""Whether every job has ended, as seen in one look."""

import time

from windlass import App
from windlass.core.status import LIVE


def all_ended(app: App) -> bool:
    """All statuses of one answer: a job that goes from one to the next would hide from a look at each."""
    return not _live(app)


def until_ended(app: App, seconds: float) -> None:
    """Wait until every job has ended, as long as some job ends within these seconds: that is no limit on speed."""
    least, end = None, 0.0
    while left := _live(app):
        if least is None or sum(left.values()) < least:
            least, end = sum(left.values()), time.monotonic() + seconds
        assert time.monotonic() < end, f"no job ended within {seconds:g} s: {left}"
        time.sleep(0.04)


def _live(app: App) -> dict[str, int]:
    totals = app.stats.counts().totals
    return {str(status): totals[status] for status in LIVE if totals[status]}
