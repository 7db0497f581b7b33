"""One job: its history, attempts, contents, chain, why it does not run, and what can be done."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, duration
from windlass.core.status import FINISHED, RETRYABLE, WAITING, Status
from windlass.core.tokens import Scope
from windlass.core.why.explain import Why
from windlass.errors import InvalidOption, InvalidPayload
from windlass.server.dashboard.confirm import Change, confirm
from windlass.server.dashboard.history import band, phases
from windlass.server.dashboard.page import Download, Moved, Page, Reply, Shown, View, unknown_verb
from windlass.server.dashboard.tree import tree_of
from windlass.server.jobs import (
    DeleteQuery,
    JobPatch,
    cancel_job,
    change_job,
    explain_job,
    get_job,
    list_links,
    retry_job,
    run_job,
)
from windlass.server.problem import Refused

MAX_EDITABLE = 16 * 1024
"""Characters of a payload that a form has."""
PARTS = ("payload", "result", "meta")
NAMES = {
    "key": "idempotency_key",
    "concurrency key": "concurrency_key",
    "tenant": "tenant",
    "flow": "flow",
    "runner": "worker",
}


async def show_job(view: View) -> Reply:
    """Everything about one job."""
    answer = await view.ask(get_job, id=view.path["id"])
    job = answer.body
    why: Why = (await view.ask(explain_job, id=job.id)).body
    links = (await view.ask(list_links, id=job.id)).body
    text = _editable(view, job)
    found = phases(job, max(datetime.now(UTC), why.at))
    context = {
        "job": job,
        "seen": answer.headers.get("etag", ""),
        "why": why,
        "links": links if len(links.jobs) > 1 else None,
        "phases": found,
        "band": band(found),
        "parts": [(name, tree_of(getattr(job, name))) for name in PARTS if getattr(job, name) is not None],
        "names": [(said, getattr(job, name)) for said, name in NAMES.items() if getattr(job, name)],
        "verbs": _verbs(job) if view.allows("operate") else [],
        "payload_text": text,
        "payload_digest": "" if text is None else _digest(text),
        "saved": view.asked("said") == "changed",
    }
    return Shown("job.html", f"{job.type} {job.id[-12:]}", context)


def _verbs(job: Job) -> list[str]:
    """What its status allows."""
    found = []
    if job.status in (Status.SCHEDULED, Status.FAILED):
        found.append("run")
    if job.status in RETRYABLE:
        found.append("retry")
    if job.status not in FINISHED and not job.cancel_requested:
        found.append("cancel")
    if job.status in WAITING or job.status is Status.DEAD:
        found.append("change")
    if job.status in FINISHED:
        found.append("delete")
    return found


def _text(value: Any) -> str:
    """A value as JSON whose invisible characters are escaped."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def _editable(view: View, job: Job) -> str | None:
    """The payload for a form; None if it is hidden or too large for one."""
    text = _text(job.payload) if view.caller.sees_payloads else None
    return None if text is None or len(text) > MAX_EDITABLE else text


def _digest(text: str) -> str:
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()


async def change_one(view: View) -> Reply:
    """Do what a button of the page says."""
    verb, id_ = view.path["verb"], view.path["id"]
    if verb not in _CHANGES:
        raise unknown_verb(verb)
    if verb in _QUESTIONS:
        question = Change(question=_QUESTIONS[verb], button=_BUTTONS[verb], back=f"/jobs/{id_}", jobs=(id_,))
        if (asked := confirm(view, f"/jobs/{id_}/{verb}", question)) is not None:
            return asked
    seen = view.given("seen")
    return Moved(await _CHANGES[verb](view, id_, {"if-match": seen} if seen else {}))


async def _cancel(view: View, id_: str, headers: dict[str, str]) -> str:
    await view.ask(cancel_job, id=id_, query=DeleteQuery(), headers=headers)
    return f"/jobs/{id_}"


async def _delete(view: View, id_: str, headers: dict[str, str]) -> str:
    await view.ask(cancel_job, id=id_, query=DeleteQuery(purge=True), headers=headers)
    return "/jobs?said=delete.1.0"


async def _retry(view: View, id_: str, headers: dict[str, str]) -> str:
    await view.ask(retry_job, id=id_, headers=headers)
    return f"/jobs/{id_}"


async def _run(view: View, id_: str, headers: dict[str, str]) -> str:
    await view.ask(run_job, id=id_, headers=headers)
    return f"/jobs/{id_}"


async def _change(view: View, id_: str, headers: dict[str, str]) -> str:
    """Change what the form changed: fields that are as they were are not sent."""
    patch = JobPatch()
    if (queue := view.given("queue").strip()) != view.given("queue_was"):
        patch.queue = queue
    if (priority := view.given("priority").strip()) != view.given("priority_was"):
        patch.priority = _number(priority)
    if wait := view.given("delay").strip():
        patch.delay = duration(wait, "delay") / SECOND
    if "payload" in view.form and _digest(view.given("payload")) != view.given("payload_was"):
        if not view.caller.sees_payloads:
            raise Refused(403, "missing_scope", "this needs the scope payloads")
        patch.payload = _payload(view.given("payload"))
    await view.ask(change_job, id=id_, body=patch, headers=headers)
    return f"/jobs/{id_}?said=changed"


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidOption("priority", f"must be a whole number, not {text[:40]!r}") from None


def _payload(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidPayload("payload", f"is no JSON object: {str(error)[:200]}") from None


async def download_part(view: View) -> Reply:
    """The payload, result or meta as a file, whole."""
    view.caller.need(Scope.PAYLOADS)
    job, part = (await view.ask(get_job, id=view.path["id"])).body, view.path["part"]
    if part not in PARTS:
        raise Refused(404, "not_found", f"a job has no {part[:40]!r}")
    return Download(f"{job.id}-{part}.json", _text(getattr(job, part)).encode())


_CHANGES: dict[str, Callable[[View, str, dict[str, str]], Awaitable[str]]] = {
    "cancel": _cancel,
    "delete": _delete,
    "retry": _retry,
    "run": _run,
    "change": _change,
}
_QUESTIONS = {
    "cancel": "Cancel this job?",
    "delete": "Delete this job, its payload, result and log lines?",
    "retry": "Run this job again, with a new budget of attempts?",
}
_BUTTONS = {"cancel": "Cancel 1 job", "delete": "Delete 1 job", "retry": "Retry 1 job"}
PAGES = (
    Page(path="/jobs/{id}", handler=show_job),
    Page(path="/jobs/{id}/{part}.json", handler=download_part),
    Page(path="/jobs/{id}/{verb}", method="POST", handler=change_one, scope=Scope.OPERATE),
)
