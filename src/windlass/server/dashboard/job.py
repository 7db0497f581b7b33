"""One job: its history, attempts, contents, chain, why it does not run, and its actions."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from windlass.core.groups.ids import is_group_id
from windlass.core.ids import is_id
from windlass.core.jobs.job import Job
from windlass.core.status import FINISHED, RETRYABLE, WAITING, Status
from windlass.core.tokens import Scope
from windlass.core.why.explain import Why
from windlass.errors import InvalidInput
from windlass.server.api.jobs import (
    DeleteQuery,
    JobPatch,
    JobRecord,
    RetryRequest,
    cancel_job,
    change_job,
    explain_job,
    get_job,
    list_links,
    list_payloads,
    retry_job,
    run_job,
)
from windlass.server.dashboard.confirm import Change, confirm
from windlass.server.dashboard.figures.history import band, phases
from windlass.server.dashboard.figures.machine import machine
from windlass.server.dashboard.figures.tree import tree_of
from windlass.server.dashboard.forms.changed import State, state_of_job, text_of, unless_changed
from windlass.server.dashboard.forms.fields import as_text
from windlass.server.dashboard.forms.job_change import JobForm, form_of, note_error, patch_of, sent_form
from windlass.server.dashboard.page import Download, Moved, Page, Reply, Shown, View, unknown_verb
from windlass.server.problem import Refused

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
    return await _page(view)


async def _page(view: View, form: JobForm | None = None) -> Reply:
    """The page, with the form as it was sent if it has errors."""
    answer = await view.ask(get_job, id=view.path["id"])
    job: JobRecord = answer.body
    why: Why = (await view.ask(explain_job, id=job.id)).body
    links = (await view.ask(list_links, id=job.id)).body
    earlier = (await view.ask(list_payloads, id=job.id)).body.payloads if view.caller.sees_payloads else []
    found = phases(job, max(datetime.now(UTC), why.at), earlier)
    context = {
        "job": job,
        "seen": answer.headers.get("etag", ""),
        "was": text_of(state_of_job(job)),
        "why": why,
        "links": links if len(links.jobs) > 1 else None,
        "phases": found,
        "machine": machine(job, found),
        "band": band(found),
        "parts": [(name, tree_of(getattr(job, name))) for name in PARTS if getattr(job, name) is not None],
        "earlier": [(each, tree_of(each.payload)) for each in earlier],
        "names": [(said, getattr(job, name)) for said, name in NAMES.items() if getattr(job, name)],
        "has_flow_page": job.flow is not None and is_id(job.flow) and is_group_id(job.flow),
        "verbs": _verbs(job) if view.allows("operate") else [],
        "form": form or form_of(view, job),
        "trace_link": view.look.trace_link(job.trace),
        "saved": view.asked("said") == "changed",
    }
    return Shown("job.html", f"{job.type} {job.id[-12:]}", context, 422 if form else 200)


def _verbs(job: Job) -> list[str]:
    """The verbs that its status allows."""
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


async def change_one(view: View) -> Reply:
    """Run the verb of a button."""
    verb, id_ = view.path["verb"], view.path["id"]
    if verb not in _CHANGES:
        raise unknown_verb(verb)
    if verb in _QUESTIONS:
        question = Change(
            question=_QUESTIONS[verb],
            button=_BUTTONS[verb],
            back=f"/jobs/{id_}",
            detail="" if view.given("confirmed") else await _said(view, id_),
            jobs=(id_,),
        )
        if (asked := confirm(view, f"/jobs/{id_}/{verb}", question)) is not None:
            return asked
    seen = view.given("seen")
    target = {"name": id_, "title": "this job", "back": f"/jobs/{id_}"}
    change = _CHANGES[verb](view, id_, {"if-match": seen} if seen else {})

    async def state() -> State:
        return state_of_job((await view.ask(get_job, id=id_)).body)

    return await unless_changed(view, change, state, target)


async def _said(view: View, id_: str) -> str:
    """The job of a question in words."""
    job: JobRecord = (await view.ask(get_job, id=id_)).body
    return f"{job.type}, {job.status}, in queue {job.queue}."


async def _cancel(view: View, id_: str, headers: dict[str, str]) -> Reply:
    await view.ask(cancel_job, id=id_, query=DeleteQuery(), headers=headers)
    return Moved(f"/jobs/{id_}")


async def _delete(view: View, id_: str, headers: dict[str, str]) -> Reply:
    await view.ask(cancel_job, id=id_, query=DeleteQuery(purge=True), headers=headers)
    return Moved("/jobs?said=delete.1.0")


async def _retry(view: View, id_: str, headers: dict[str, str]) -> Reply:
    await view.ask(retry_job, id=id_, body=RetryRequest(), headers=headers)
    return Moved(f"/jobs/{id_}")


async def _run(view: View, id_: str, headers: dict[str, str]) -> Reply:
    await view.ask(run_job, id=id_, headers=headers)
    return Moved(f"/jobs/{id_}")


async def _change(view: View, id_: str, headers: dict[str, str]) -> Reply:
    """Change what the form changed, and retry the job if that button was pressed; errors go beside their fields."""
    form = sent_form(view)
    patch = patch_of(view, form)
    retries = view.given("then") == "retry"
    if form.errors:
        return await _page(view, form)
    try:
        if patch != JobPatch() or not retries:
            changed = await view.ask(change_job, id=id_, body=patch, headers=headers)
            headers = {"if-match": changed.headers["etag"]}
    except InvalidInput as error:
        note_error(form, error)
        return await _page(view, form)
    return await _retry(view, id_, headers) if retries else Moved(f"/jobs/{id_}?said=changed")


async def download_part(view: View) -> Reply:
    """The payload, result or meta as a file, whole."""
    view.caller.need(Scope.PAYLOADS)
    job, part = (await view.ask(get_job, id=view.path["id"])).body, view.path["part"]
    if part not in PARTS:
        raise Refused(404, "not_found", f"a job has no {part[:40]!r}")
    return Download(f"{job.id}-{part}.json", as_text(getattr(job, part)).encode())


_CHANGES: dict[str, Callable[[View, str, dict[str, str]], Awaitable[Reply]]] = {
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
