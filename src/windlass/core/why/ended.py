"""How a finished job ended."""

from windlass.core.graphs.ids import is_flow
from windlass.core.graphs.rules import node_in_reason
from windlass.core.groups.rules import member_in_reason
from windlass.core.jobs.dependencies import describe_cause, parent_in_reason
from windlass.core.jobs.job import Job
from windlass.core.moments import to_micros
from windlass.core.status import Status
from windlass.core.why.facts import WhyFacts
from windlass.core.why.reason import Reason, at, short


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
    """Of a group or graph: a retry of its own job alone would find the same member or node again."""
    lost = member_in_reason(job.reason) or node_in_reason(job.reason)
    do = f"to run what was lost again: windlass flows retry {job.id}"
    return Reason(code="cancelled", text=text, do=do, jobs=() if lost is None else (lost,))


def _skipped(cause: Job, when: str) -> Reason:
    """Of a node whose condition cannot be met."""
    text = f"It was skipped at {when}: it was to run if {cause.type} {cause.id} did not complete."
    return Reason(code="cancelled", text=text, jobs=(cause.id,))
