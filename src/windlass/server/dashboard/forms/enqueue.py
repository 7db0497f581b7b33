"""A new job: a form made from the task's schema, or a JSON field where the server does not know the task."""

import hashlib
import hmac
from typing import Any

import msgspec

from windlass.core.ids import new_id
from windlass.core.moments import SECOND, duration
from windlass.core.text import cut
from windlass.core.tokens import Scope
from windlass.errors import InvalidInput, InvalidOption, InvalidPayload, UnknownTask, WindlassError
from windlass.server.api.enqueue import JobReceipt, JobRequest, enqueue_job
from windlass.server.api.jobs import get_job
from windlass.server.api.live_workers import TypeRecord, list_types
from windlass.server.api.requests import IDEMPOTENCY_KEY
from windlass.server.dashboard.forms.fields import (
    Field,
    as_text,
    fields_of,
    filled,
    known_task,
    read_fields,
    read_json,
    with_error,
)
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View

OPTIONS = ("queue", "priority", "delay", "tenant", "tags")
MAX_TYPES = 1_000
MAX_COPIED = 16 * 1024
"""Characters of a payload that is copied into a form."""


class Draft(msgspec.Struct, kw_only=True):
    """A form and its values."""

    type: str = ""
    known: bool = False
    """Whether the form has a field for each argument."""
    fields: list[Field] = []
    payload: str = "{}"
    """The whole payload, if the task is not known."""
    options: dict[str, str] = {}
    errors: dict[str, str] = {}
    """By field; "" is the form itself."""
    nonce: str = ""
    note: str = ""


async def show_form(view: View) -> Reply:
    """The choice of a type, or the form of one; with `job`, filled with the values of that job."""
    if source := view.asked("job"):
        return await _copied(view, source)
    draft = await _draft(view, view.asked("type").strip())
    return await _page(view, draft)


async def _copied(view: View, id_: str) -> Reply:
    job = (await view.ask(get_job, id=id_)).body
    draft = await _draft(view, job.type)
    draft.options = {"queue": job.queue, "priority": str(job.priority), "tenant": job.tenant or ""}
    draft.options["tags"] = ", ".join(job.tags)
    if not view.caller.sees_payloads or not isinstance(job.payload, dict):
        draft.note = "Its payload is not copied: this token does not see it."
    elif len(text := as_text(job.payload)) > MAX_COPIED:
        draft.note = "Its payload is too large to be copied into a form."
    elif draft.known and not job.payload.keys() - {each.name for each in draft.fields}:
        draft.fields = filled(draft.fields, job.payload)
    else:
        draft.known, draft.payload = False, text
    return await _page(view, draft)


async def _draft(view: View, type_: str) -> Draft:
    draft = Draft(type=type_, nonce=new_id())
    if (task := known_task(view, type_)) is not None:
        schema = task.signature.json_schema()
        draft.known = not schema["additionalProperties"]
        draft.fields = fields_of(schema, task.signature.defaults) if draft.known else []
    return draft


async def _page(view: View, draft: Draft) -> Reply:
    types: list[TypeRecord] = (await view.ask(list_types)).body.types
    context = {"draft": draft, "types": types[:MAX_TYPES], "has_tasks": bool(view.app.tasks)}
    context["knows"] = known_task(view, draft.type) is not None
    title = f"Enqueue {cut(draft.type, 60)}" if draft.type else "Enqueue a job"
    return Shown("enqueue.html", title, context, 422 if draft.errors else 200)


async def enqueue(view: View) -> Reply:
    """Enqueue the job of the form, or show the form again with errors beside its fields."""
    draft = await _draft(view, view.given("type").strip())
    draft.nonce = view.given("nonce") or draft.nonce
    draft.options = {name: view.given(name).strip() for name in OPTIONS}
    form = {name: values[0] for name, values in view.form.items() if values}
    payload: Any = {}
    if draft.known and "payload" not in view.form:
        payload, draft.fields = read_fields(draft.fields, form)
        draft.errors |= {each.key: each.error for each in draft.fields if each.error}
    else:
        draft.known, draft.payload = False, view.given("payload").replace("\r\n", "\n")
        payload = _whole(draft)
    options = _options(draft)
    if draft.errors:
        return await _page(view, draft)
    try:
        receipt = await _ask(view, draft, payload, options)
    except (InvalidInput, UnknownTask) as error:
        _note(draft, error)
        return await _page(view, draft)
    return Moved(f"/jobs/{receipt.id}")


def _whole(draft: Draft) -> Any:
    try:
        payload = read_json(draft.payload, "payload")
        if not isinstance(payload, dict):
            raise InvalidPayload("payload", "must be a JSON object of arguments")
    except InvalidPayload as error:
        draft.errors["payload"] = error.problem if error.field == "payload" else str(error)
        return {}
    return payload


def _options(draft: Draft) -> dict[str, Any]:
    """The options that are filled in; one that cannot be read is noted as an error of its field."""
    given = {name: text for name, text in draft.options.items() if text}
    found: dict[str, Any] = {name: given[name] for name in ("queue", "tenant") if name in given}
    try:
        if "delay" in given:
            found["delay"] = duration(given["delay"], "delay") / SECOND
    except InvalidInput as error:
        draft.errors["delay"] = error.problem
    if "priority" in given:
        try:
            found["priority"] = int(given["priority"])
        except ValueError:
            draft.errors["priority"] = InvalidOption("priority", "must be a whole number").problem
    if "tags" in given:
        found["tags"] = [each.strip() for each in given["tags"].split(",") if each.strip()]
    return found


async def _ask(view: View, draft: Draft, payload: Any, options: dict[str, Any]) -> JobReceipt:
    """Enqueue it. A form that is sent twice makes one job; one that was edited in between makes another."""
    text = msgspec.json.encode(payload)
    body = JobRequest(type=draft.type, payload=msgspec.Raw(text), **options)
    sent = msgspec.json.encode([draft.type, options]) + text
    key = hmac.new(draft.nonce.encode(), sent, hashlib.sha256).hexdigest()
    answer = await view.ask(enqueue_job, body=body, headers={IDEMPOTENCY_KEY.lower(): key})
    return msgspec.json.decode(msgspec.json.encode(answer.body), type=JobReceipt)


def _note(draft: Draft, error: WindlassError) -> None:
    """Put an error beside the field that it is about."""
    field, problem = getattr(error, "field", "type"), getattr(error, "problem", str(error))
    if field in OPTIONS or field in ("type", "payload"):
        draft.errors[field] = problem
        return
    draft.fields, found = with_error(draft.fields, field, problem)
    draft.errors["" if not found and draft.known else "payload"] = str(error)
    if found:
        draft.errors.pop("payload", None)
        draft.errors |= {each.key: each.error for each in draft.fields if each.error}


PAGES = (
    Page(path="/enqueue", handler=show_form, scope=Scope.ENQUEUE),
    Page(path="/enqueue", method="POST", handler=enqueue, scope=Scope.ENQUEUE),
)
