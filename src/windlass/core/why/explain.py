"""Why a job does not run, how it runs, or how it ended; there is always an answer."""

from datetime import datetime

import msgspec

from windlass.core.graphs.ids import is_flow
from windlass.core.graphs.rules import node_in_reason
from windlass.core.groups.rules import member_in_reason
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import describe_cause, parent_in_reason
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, Micros, to_datetime, to_micros
from windlass.core.status import FINISHED, Status
from windlass.core.why.estimate import Estimate, estimate
from windlass.core.why.facts import WhyFacts
from windlass.core.why.reason import Reason, at, short, span
from windlass.core.why.waiting import origin, waits


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job does not run, most severe reason first; or how it runs, or how it ended."""

    id: JobId
    type: str
    queue: str
    status: Status
    at: datetime
    """When this was true, by the store's clock."""
    reasons: tuple[Reason, ...]
    """Never empty."""
    estimated_start: datetime | None = None
    """The start of a waiting job; None if unknown, and `basis` says why."""
    earliest: datetime | None = None
    latest: datetime | None = None
    """None beside an estimate means unknown."""
    basis: str | None = None
    """How the start was estimated, or why it was not."""

    @property
    def first(self) -> Reason:
        """The most severe reason."""
        return self.reasons[0]


def explain(facts: WhyFacts) -> Why:
    job = facts.job
    start = Estimate()
    if job.status in FINISHED:
        reasons = [ended(facts)]
    elif job.status is Status.RUNNING:
        reasons = runs(facts)
    else:
        start = estimate(facts)
        reasons = waits(facts, start)
    return Why(
        id=job.id,
        type=job.type,
        queue=job.queue,
        status=job.status,
        at=to_datetime(facts.now),
        reasons=(*reasons, *origin(facts)),
        estimated_start=_moment(start.start),
        earliest=_moment(start.earliest),
        latest=_moment(start.latest),
        basis=start.basis,
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else to_datetime(micros)


SLOW_FACTOR = 3
"""A job that runs this many times longer than 95 of 100 of its type is slow."""
MIN_SLOW: Micros = 10 * SECOND
"""A job that has run for less than this is never slow."""


def runs(facts: WhyFacts) -> list[Reason]:
    """The reasons for a running job, most severe first."""
    return [*_lapsed(facts), *_stopping(facts), _since(facts), *_progress(facts)]


def _since(facts: WhyFacts) -> Reason:
    job, now = facts.job, facts.now
    where = f"in runner {job.worker}" + (f" of worker {facts.worker}" if facts.worker else "")
    if job.started_at is None:
        claimed = span(now - to_micros(job.claimed_at or job.updated_at))
        text = f"It was claimed {claimed} ago, {where}; its start is shown once it has run for some seconds."
        return Reason(code="claimed", text=text)
    ran = now - to_micros(job.started_at)
    text = f"It has run for {span(ran)} {where}, attempt {job.attempt}"
    usual = _usual(facts)
    if usual is None:
        return Reason(code="running", text=f"{text}; nothing of its type ended in the last hour to compare with.")
    median, most = usual
    text += f"; its type usually takes {span(median)}, and 95 of 100 at most {span(most)}."
    if ran < max(SLOW_FACTOR * most, MIN_SLOW):
        return Reason(code="running", text=text)
    limit = f" It may take {span(round(job.timeout * SECOND))}, then it is stopped." if job.timeout else ""
    return Reason(code="running_long", text=text + limit, do=f"to stop it: windlass jobs cancel {job.id}")


def _usual(facts: WhyFacts) -> tuple[Micros, Micros] | None:
    median, most = facts.typical_duration.quantile(0.5), facts.typical_duration.quantile(0.95)
    return None if median is None or most is None else (round(median), round(most))


def _lapsed(facts: WhyFacts) -> list[Reason]:
    """The reason for a job whose lease was not renewed in time."""
    job, now = facts.job, facts.now
    if job.lease_expires_at is not None and to_micros(job.lease_expires_at) > now:
        return []
    if job.lease_expires_at is None:
        text = f"Its runner {job.worker} is gone; a coordinator puts the job back in a moment."
    else:
        text = f"The lease of its runner {job.worker} expired at {at(to_micros(job.lease_expires_at), now)}."
    return [Reason(code="lease_over", text=text, do="if that does not pass: windlass doctor")]


def _stopping(facts: WhyFacts) -> list[Reason]:
    job = facts.job
    if not job.cancel_requested:
        return []
    why = f": {job.reason}" if job.reason else ""
    text = f"It was asked to stop{why}; a def handler must check ctx.cancelled."
    return [Reason(code="stopping", text=text)]


def _progress(facts: WhyFacts) -> list[Reason]:
    said = facts.job.progress
    if said is None:
        return []
    share = f"{said.done:g} of {said.total:g}" if said.total is not None else f"{said.done:g}"
    note = f", {said.note}" if said.note else ""
    when = f"{span(facts.now - to_micros(said.at))} ago" if said.at else "at some time"
    return [Reason(code="progress", text=f"It last reported progress {when}: {share}{note}.")]


def ended(facts: WhyFacts) -> Reason:
    """How a finished job ended."""
    job, now = facts.job, facts.now
    when = at(to_micros(job.finished_at or job.updated_at), now)
    attempts = f"{job.attempt} attempt{'' if job.attempt == 1 else 's'}"
    again = f"to run it again: windlass jobs retry {job.id}"
    if job.status is Status.COMPLETED:
        return Reason(code="completed", text=f"It completed at {when}, after {attempts}.", count=job.attempt)
    why = f": {short(job.reason)}" if job.reason else ""
    if job.status is Status.CANCELLED:
        if (parent := parent_in_reason(job.reason)) is not None:
            if facts.cause is not None and facts.cause.status is Status.COMPLETED:
                return _skipped(facts.cause, when)
            first = parent if facts.cause is None else facts.cause.id
            began = "" if facts.cause is None else f" It began with {short(describe_cause(facts.cause), 240)}."
            again = f"to run that one again, and then this: windlass jobs retry {first}"
            return Reason(code="cancelled", text=f"It was cancelled at {when}{why}.{began}", do=again, jobs=(first,))
        if is_flow(job.type, job.id):
            return _lost_flow(job, f"It was cancelled at {when}{why}.")
        return Reason(code="cancelled", text=f"It was cancelled at {when}{why}.", do=again)
    error = f" The last error: {job.error.type}: {short(job.error.message)}." if job.error else ""
    text = f"It died at {when}, after {attempts}{why}.{error}"
    return Reason(code="dead", text=text, do=again, count=job.attempt)


def _lost_flow(job: Job, text: str) -> Reason:
    """The reason for a group or graph: a retry of its own job alone would find the same member or node again."""
    lost = member_in_reason(job.reason) or node_in_reason(job.reason)
    do = f"to run what was lost again: windlass flows retry {job.id}"
    return Reason(code="cancelled", text=text, do=do, jobs=() if lost is None else (lost,))


def _skipped(cause: Job, when: str) -> Reason:
    """The reason for a node whose condition cannot be met."""
    text = f"It was skipped at {when}: it was to run if {cause.type} {cause.id} did not complete."
    return Reason(code="cancelled", text=text, jobs=(cause.id,))
