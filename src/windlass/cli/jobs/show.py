"""A job for people: one line in a list, or all details."""

import json
from collections.abc import Mapping, Sequence

from windlass.cli.output.tables import ago, clock, console, hanging, plain, styled
from windlass.client.verbs.payloads import EarlierPayload
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT
from windlass.core.jobs.job import DEFAULT_KEY_LIMIT, Job
from windlass.core.moments import SECOND, show_duration
from windlass.core.status import Status

_ENDINGS = frozenset({"failed", "crashed", "dead", "completed", "cancelled"})
"""Outcomes after which a retry starts anew; after any other the job goes on by itself."""


def row_of(job: Job) -> list[str]:
    return [job.id, str(job.status), job.type, job.queue, str(job.attempt), ago(job.created_at), what_of(job)]


def what_of(job: Job) -> str:
    """The most important fact about a job."""
    if _stopping(job):
        text = _asked(job)
    elif job.error is not None and job.status != "completed":
        reason = f" ({job.reason})" if job.reason and job.reason != job.error.message else ""
        text = f"{job.error.type}: {job.error.message}{reason}"
    elif job.reason:
        text = job.reason
    elif job.progress is not None:
        text = _progress(job)
    else:
        text = ""
    if job.status in ("scheduled", "failed"):
        text = f"due {ago(job.run_at)}" + (f"; {text}" if text else "")
    return text if len(text) <= 160 else text[:159] + "…"


def _stopping(job: Job) -> bool:
    """Whether the reason is that of a cancel request: it may still complete."""
    return job.cancel_requested and not job.finished


def _asked(job: Job) -> str:
    return f"asked to stop: {job.reason}" if job.reason else "asked to stop"


def _progress(job: Job) -> str:
    assert job.progress is not None
    done, total, note = job.progress.done, job.progress.total, job.progress.note
    share = f"{done:g} of {total:g}" if total is not None else f"{done:g}"
    return f"{share}{', ' + note if note else ''}"


def describe(job: Job, relations: Mapping[str, str], earlier: Sequence[EarlierPayload] = ()) -> None:
    """All details of a job, its relations, and the payloads that it had before it was changed."""
    out = console()
    out.print(plain(job.type, "bold"), styled(job.status), job.id)
    facts = {
        "queue": job.queue,
        "reason": _asked(job) if _stopping(job) else job.reason,
        "payload": json.dumps(job.payload, ensure_ascii=False),
        "result": json.dumps(job.result, ensure_ascii=False) if job.status == "completed" else None,
        "priority": str(job.priority),
        "attempts": _counters(job),
        "created": clock(job.created_at),
        "due": None if job.reason == WAITING_FOR_PARENT else clock(job.run_at),
        "started": f"{clock(job.started_at)} ({ago(job.started_at)})"
        if job.started_at and not job.finished
        else None,
        "finished": clock(job.finished_at) if job.finished_at else None,
        "worker": job.worker,
        "lease ends": ago(job.lease_expires_at) if job.lease_expires_at else None,
        "expires": clock(job.expires_at) if job.expires_at else None,
        "key": _key(job),
        "concurrency": _concurrency(job),
        "rate cost": str(job.rate_cost) if job.rate_cost != 1 else None,
        "tenant": job.tenant,
        "parent": None if job.parent in job.parents else job.parent,
        "schedule": _origin(job),
        **relations,
        "tags": ", ".join(job.tags) or None,
        "meta": json.dumps(job.meta, ensure_ascii=False) if job.meta is not None else None,
        "progress": _progress(job) if job.progress else None,
    }
    for name, value in facts.items():
        if value is not None:
            out.print(hanging(f"  {name:14}", value))
    for each in earlier:
        text = json.dumps(each.payload, ensure_ascii=False)
        out.print(hanging("  payload before", f" {text} (until {clock(each.until)}, changed by {each.actor.name})"))
    _describe_attempts(job)
    if job.error is not None and job.error.traceback:
        out.print("\n[bold]Last error[/]")
        out.print(plain(job.error.traceback.rstrip()))
    if job.logs:
        out.print("\n[bold]Log[/]")
        for line in job.logs:
            out.print(hanging(f"  {clock(line.at)} #{line.attempt} ", line.text))


def _key(job: Job) -> str | None:
    if job.idempotency_key is None or job.idempotency_window is None:
        return job.idempotency_key
    return f"{job.idempotency_key} (taken for {show_duration(round(job.idempotency_window * SECOND))} after its end)"


def _concurrency(job: Job) -> str | None:
    """Its concurrency key and the limits of that key."""
    if job.concurrency_key is None:
        return None
    strict = ", in strict order" if job.key_strict else ""
    rate = f", {job.key_rate}" if job.key_rate else ""
    return f"{job.concurrency_key} ({job.key_limit or DEFAULT_KEY_LIMIT} at once{strict}{rate})"


def _origin(job: Job) -> str | None:
    """Its schedule and tick."""
    if job.schedule is None:
        return None
    return f"{job.schedule}, {'run at once' if job.tick is None else f'for {clock(job.tick)}'}"


def _counters(job: Job) -> str:
    """The counters that are not zero."""
    counts = {
        "failed": job.failures,
        "crashed": job.crashes,
        "requeued": job.requeues,
        "rescued": job.rescues,
        "in a runner that crashed": job.suspicions,
        "snoozed": job.snoozes,
    }
    said = [f"{count} {what}" for what, count in counts.items() if count]
    return _budget(job) + "".join(f"; {each}" for each in said)


def _budget(job: Job) -> str:
    """Attempts are numbered continuously; a retry gives a new budget."""
    spent = job.failures + job.crashes
    ended_now = job.status in (Status.COMPLETED, Status.CANCELLED)
    before = sum(each.outcome in _ENDINGS for each in job.attempts) - spent - ended_now
    if before > 0:
        return f"{job.attempt} made; {spent} of {job.max_attempts} allowed used since the retry"
    return f"{job.attempt} made, {job.max_attempts} allowed"


def _describe_attempts(job: Job) -> None:
    if not job.attempts:
        return
    console().print("\n[bold]Attempts[/]")
    for each in job.attempts:
        took = ""
        if each.started_at and each.ended_at:
            took = f" after {show_duration(round((each.ended_at - each.started_at).total_seconds() * SECOND))}"
        error = f": {each.error.type}: {each.error.message}" if each.error else ""
        line = f"{each.outcome}{took} on {each.worker or '-'}, claimed {clock(each.claimed_at)}{error}"
        console().print(hanging(f"  #{each.attempt} ", line))
