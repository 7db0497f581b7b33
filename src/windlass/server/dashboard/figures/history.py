"""The history of a job: which status it had, from when to when, and how its attempts ended."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from markupsafe import Markup

from windlass.client.verbs.payloads import EarlierPayload
from windlass.core.jobs.job import Attempt, Job
from windlass.core.status import FINISHED, WAITING, Status

WIDTH = 1000.0
MIN_WIDTH = 6.0
OUTCOMES = {"completed": "completed", "failed": "failed", "dead": "dead", "cancelled": "cancelled"}


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A time in one status."""

    status: str
    text: str
    since: datetime
    until: datetime | None
    """None: a moment."""
    lasts: bool = False
    """Whether it has not ended: `until` is now."""
    state: str = ""
    """The status of the job; "": the same as `status`, which the phase is shown with."""

    @property
    def seconds(self) -> float | None:
        """Its length, never negative; None for a moment."""
        return None if self.until is None else max(0.0, (self.until - self.since).total_seconds())


def phases(job: Job, now: datetime, earlier: Sequence[EarlierPayload] = ()) -> list[Phase]:
    """The phases and the changes of the payload, oldest first."""
    changes = [
        Phase(status="changed", text=f"payload changed by {each.actor.name}", since=each.until, until=None)
        for each in earlier
    ]
    return sorted([*_phases(job, now), *changes], key=lambda each: each.since) if changes else list(_phases(job, now))


def _phases(job: Job, now: datetime) -> Iterator[Phase]:
    since, ended = job.created_at, ""
    for each in job.attempts:
        begin = each.claimed_at or each.started_at
        if begin is None:
            continue
        yield from _waits(job, each, since, max(since, begin), ended)
        end = each.ended_at
        status = OUTCOMES.get(each.outcome, "running")
        text = f"attempt {each.attempt}: {each.outcome.replace('_', ' ')}"
        yield Phase(status=status, text=text, since=begin, until=end or now, lasts=end is None, state="running")
        since, ended = end or now, each.outcome
    if job.status in WAITING:
        if ended in FINISHED and since < job.run_at <= now:
            yield _retried(ended, since, job.run_at)
            since = job.run_at
        text = "waits for its next attempt" if job.status is Status.FAILED else str(job.status)
        text += f" ({job.reason})" if job.reason else ""
        yield Phase(status=str(job.status), text=text, since=since, until=max(since, now), lasts=True)
    elif job.status is Status.RUNNING and not any(each.ended_at is None for each in job.attempts):
        began = job.started_at or job.claimed_at or since
        yield Phase(status="running", text=f"attempt {job.attempt}", since=began, until=max(began, now), lasts=True)
    elif job.finished_at is not None:
        text = f"{job.status}: {job.reason}" if job.reason else str(job.status)
        yield Phase(status=str(job.status), text=text, since=job.finished_at, until=None)


def _retried(ended: str, since: datetime, until: datetime) -> Phase:
    return Phase(status=ended, text=f"{ended} until it was retried", since=since, until=until)


def _waits(job: Job, attempt: Attempt, since: datetime, begin: datetime, ended: str) -> Iterator[Phase]:
    """The wait before an attempt: until it was due, if the job still has that time, and after it.

    `ended` is the outcome of the attempt before: one that finished the job was followed by a retry of an operator.
    """
    is_first = attempt.attempt == 1 or job.failures == 0
    before = "scheduled" if is_first else "failed"
    if attempt is job.attempts[-1] and since < job.run_at <= begin:
        if ended in FINISHED:
            yield _retried(ended, since, job.run_at)
        elif is_first and job.flow:
            yield Phase(status="blocked", text="waited for what it depends on", since=since, until=job.run_at)
        else:
            yield Phase(status=before, text="waited until it was due", since=since, until=job.run_at)
        yield Phase(status="pending", text="waited for a worker", since=job.run_at, until=begin)
    elif ended in FINISHED:
        yield _retried(ended, since, begin)
    else:
        yield Phase(status="pending" if is_first else "failed", text="waited", since=since, until=begin)


def band(found: Sequence[Phase]) -> Markup:
    """The phases side by side, their widths in proportion to their lengths."""
    timed = [(each, each.seconds) for each in found if each.seconds]
    whole = sum(seconds or 0 for _, seconds in timed)
    if not whole:
        return Markup("")
    room = WIDTH - MIN_WIDTH * len(timed)
    shapes, x = [], 0.0
    for each, seconds in timed:
        width = MIN_WIDTH + max(0.0, room) * (seconds or 0) / whole
        shapes.append(
            Markup('<rect class="bar {}" x="{}" width="{}" height="12"><title>{}</title></rect>').format(
                each.status, f"{x:.1f}", f"{max(1.0, width - 1.5):.1f}", each.text
            )
        )
        x += width
    return Markup("").join(shapes)
