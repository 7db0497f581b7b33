"""How it goes with a running job: since when, against its type's usual time, and what it last said."""

from windlass.core.circumstances import Circumstances
from windlass.core.moments import SECOND, Micros, to_micros
from windlass.core.reason import Reason, at, span

OUTSTAYED = 3
"""So many times as long as 95 of 100 take, a job has run for longer than usual."""
WORTH_SAYING: Micros = 10 * SECOND
"""Before that, nobody need worry, however short the usual time is."""


def runs(facts: Circumstances) -> list[Reason]:
    """What there is to say, what needs somebody first."""
    return [*_lapsed(facts), *_stopping(facts), _since(facts), *_progress(facts)]


def _since(facts: Circumstances) -> Reason:
    job, now = facts.job, facts.now
    where = f"in runner {job.worker}" + (f" of worker {facts.worker}" if facts.worker else "")
    if job.started_at is None:
        claimed = span(now - to_micros(job.claimed_at or job.updated_at))
        text = f"It was claimed {claimed} ago, {where}, and its handler has not said yet that it began."
        return Reason(code="claimed", text=text)
    ran = now - to_micros(job.started_at)
    text = f"It has run for {span(ran)} {where}, attempt {job.attempt}"
    usual = _usual(facts)
    if usual is None:
        return Reason(code="running", text=f"{text}; nothing of its type ended in the last hour to compare with.")
    median, most = usual
    text += f"; its type usually takes {span(median)}, and 95 of 100 at most {span(most)}."
    if ran < max(OUTSTAYED * most, WORTH_SAYING):
        return Reason(code="running", text=text)
    limit = f" It may take {span(round(job.timeout * SECOND))}, then it is stopped." if job.timeout else ""
    return Reason(code="running_long", text=text + limit, do=f"to stop it: windlass jobs cancel {job.id}")


def _usual(facts: Circumstances) -> tuple[Micros, Micros] | None:
    median, most = facts.usual.quantile(0.5), facts.usual.quantile(0.95)
    return None if median is None or most is None else (round(median), round(most))


def _lapsed(facts: Circumstances) -> list[Reason]:
    """Nobody has vouched for its runner in time."""
    job, now = facts.job, facts.now
    if job.lease_expires_at is not None and to_micros(job.lease_expires_at) > now:
        return []
    if job.lease_expires_at is None:
        text = f"Its runner {job.worker} is gone; a coordinator puts the job back in a moment."
    else:
        text = f"The lease of its runner {job.worker} was over {at(to_micros(job.lease_expires_at), now)}."
    return [Reason(code="lease_over", text=text, do="if it stays so: windlass doctor")]


def _stopping(facts: Circumstances) -> list[Reason]:
    job = facts.job
    if not job.cancel_requested:
        return []
    why = f": {job.reason}" if job.reason else ""
    text = f"It was asked to stop{why}; a def handler must look at ctx.cancelled."
    return [Reason(code="stopping", text=text)]


def _progress(facts: Circumstances) -> list[Reason]:
    said = facts.job.progress
    if said is None:
        return []
    share = f"{said.done:g} of {said.total:g}" if said.total is not None else f"{said.done:g}"
    note = f", {said.note}" if said.note else ""
    when = f"{span(facts.now - to_micros(said.at))} ago" if said.at else "at some time"
    return [Reason(code="progress", text=f"It last reported progress {when}: {share}{note}.")]
