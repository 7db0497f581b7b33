"""The recount: what was enqueued, what the store says, and what the handlers recorded."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from windlass.client.app import App
from windlass.core.jobs.job import Job
from windlass.core.status import Status

LEGAL = frozenset({"completed", "failed", "dead", "snoozed", "cancelled"})
"""Outcomes of attempts that were not interrupted; a kill or a stop interrupted all others."""


class Line(msgspec.Struct):
    """One type of job."""

    type: str
    enqueued: int = 0
    completed: int = 0
    missing: int = 0
    starts: int = 0
    failed: int = 0
    again: int = 0


class Recount(msgspec.Struct):
    """The outcome of the tour."""

    lines: list[Line]
    missing: list[str]
    unfinished: list[str]
    interrupted: list[Job]
    unexplained: list[str]

    @property
    def good(self) -> bool:
        """Nothing lost, nothing left over, nothing run again without a reason."""
        return not (self.missing or self.unfinished or self.unexplained)


def recount(app: App, accepted: dict[str, str], effects: Path) -> Recount:
    """Compare what was accepted (id → type) with the store and with the handlers' records."""
    jobs = {job.id: job for job in _all_jobs(app)}
    starts = Counter(line.split()[0] for line in effects.read_text().splitlines())
    lines: dict[str, Line] = defaultdict(lambda: Line(""))
    interrupted, unexplained = [], []
    for id_, type_ in accepted.items():
        line, job = lines[type_], jobs.get(id_)
        line.type = type_
        line.enqueued += 1
        line.starts += starts[id_]
        if job is None:
            line.missing += 1
            continue
        line.completed += job.status is Status.COMPLETED
        line.failed += sum(1 for each in job.attempts if each.outcome in ("failed", "dead"))
        own = sum(1 for each in job.attempts if each.outcome in LEGAL)
        cut_short = len(job.attempts) - own
        if starts[id_] > own:
            line.again += 1
            interrupted.append(job)
        if not own <= starts[id_] <= own + cut_short:
            unexplained.append(id_)
    return Recount(
        lines=sorted(lines.values(), key=lambda each: each.type),
        missing=[id_ for id_ in accepted if id_ not in jobs],
        unfinished=[id_ for id_, job in jobs.items() if not job.finished],
        interrupted=interrupted,
        unexplained=unexplained,
    )


def _all_jobs(app: App) -> Iterable[Job]:
    cursor = None
    while True:
        page = app.jobs.list(limit=500, cursor=cursor)
        yield from page.items
        if page.next_cursor is None:
            return
        cursor = page.next_cursor
