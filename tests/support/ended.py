"""Whether every job has ended, as seen in one look."""

from windlass import App
from windlass.core.status import LIVE


def all_ended(app: App) -> bool:
    """All statuses of one answer: a job that goes from one to the next would hide from a look at each."""
    totals = app.stats.counts().totals
    return not any(totals[status] for status in LIVE)
