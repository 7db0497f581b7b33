"""A job as people read it: one line in a list, or all that is known."""

import json

from rich.text import Text

from windlass.cli.output import ago, clock, console, plain, styled
from windlass.core.job import Job
from windlass.core.moments import SECOND, show_duration


def row_of(job: Job) -> list[str]:
    return [job.id, str(job.status), job.type, job.queue, str(job.attempt), ago(job.created_at), what_of(job)]


def what_of(job: Job) -> str:
    """The one thing to know about a job."""
    if job.error is not None and job.status != "completed":
        text = f"{job.error.type}: {job.error.message}" + (f" ({job.reason})" if job.reason else "")
    elif job.reason:
        text = job.reason
    elif job.progress is not None:
        text = _progress(job)
    else:
        text = ""
    if job.status in ("scheduled", "failed"):
        text = f"due {ago(job.run_at)}" + (f"; {text}" if text else "")
    return text if len(text) <= 160 else text[:159] + "…"


def _progress(job: Job) -> str:
    assert job.progress is not None
    done, total, note = job.progress.done, job.progress.total, job.progress.note
    share = f"{done:g} of {total:g}" if total is not None else f"{done:g}"
    return f"{share}{', ' + note if note else ''}"


def describe(job: Job) -> None:
    out = console()
    out.print(plain(job.type, "bold"), styled(job.status), job.id)
    facts = {
        "queue": job.queue,
        "reason": job.reason,
        "payload": json.dumps(job.payload, ensure_ascii=False),
        "result": json.dumps(job.result, ensure_ascii=False) if job.status == "completed" else None,
        "priority": str(job.priority),
        "attempts": _counters(job),
        "created": clock(job.created_at),
        "due": clock(job.run_at),
        "finished": clock(job.finished_at) if job.finished_at else None,
        "worker": job.worker,
        "lease ends": ago(job.lease_expires_at) if job.lease_expires_at else None,
        "expires": clock(job.expires_at) if job.expires_at else None,
        "key": _key(job),
        "tenant": job.tenant,
        "parent": job.parent,
        "tags": ", ".join(job.tags) or None,
        "meta": json.dumps(job.meta, ensure_ascii=False) if job.meta is not None else None,
        "progress": _progress(job) if job.progress else None,
        "asked to stop": "yes" if job.cancel_requested and not job.finished else None,
    }
    for name, value in facts.items():
        if value is not None:
            out.print(Text.assemble((f"  {name:14}", "dim"), plain(value)))
    _describe_attempts(job)
    if job.error is not None and job.error.traceback:
        out.print("\n[bold]Last error[/]")
        out.print(plain(job.error.traceback.rstrip()))
    if job.logs:
        out.print("\n[bold]Log[/]")
        for line in job.logs:
            out.print(Text.assemble((f"  {clock(line.at)} #{line.attempt} ", "dim"), plain(line.text)))


def _key(job: Job) -> str | None:
    if job.idempotency_key is None or job.idempotency_window is None:
        return job.idempotency_key
    return f"{job.idempotency_key} (taken for {show_duration(round(job.idempotency_window * SECOND))} after its end)"


def _counters(job: Job) -> str:
    """How often what happened; what never did is left out."""
    counts = {
        "failed": job.failures,
        "crashed": job.crashes,
        "handed back": job.hand_backs,
        "rescued": job.rescues,
        "in a runner that crashed": job.suspicions,
        "snoozed": job.snoozes,
    }
    said = [f"{count} {what}" for what, count in counts.items() if count]
    return f"{job.attempt} made, {job.max_attempts} allowed" + "".join(f"; {each}" for each in said)


def _describe_attempts(job: Job) -> None:
    if not job.attempts:
        return
    console().print("\n[bold]Attempts[/]")
    for each in job.attempts:
        took = ""
        if each.started_at and each.ended_at:
            took = f" after {show_duration(round((each.ended_at - each.started_at).total_seconds() * SECOND))}"
        error = f": {each.error.type}: {each.error.message}" if each.error else ""
        line = (
            f"#{each.attempt} {each.outcome}{took} on {each.worker or '-'}, claimed {clock(each.claimed_at)}{error}"
        )
        console().print(plain("  " + line))
