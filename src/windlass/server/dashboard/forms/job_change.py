"""The form that changes a job: its values, and its errors by field."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, duration
from windlass.errors import InvalidInput, InvalidOption, InvalidPayload
from windlass.server.api.jobs import JobPatch
from windlass.server.dashboard.forms.fields import as_text, read_json
from windlass.server.dashboard.page import View
from windlass.server.problem import Refused

MAX_EDITABLE = 16 * 1024
"""Characters of a payload that can be edited in a form."""
FIELDS = ("queue", "priority", "delay", "payload")


class JobForm(msgspec.Struct, kw_only=True):
    """The form of a job's page."""

    queue: str
    priority: str
    delay: str = ""
    payload: str | None = None
    """None: hidden, or too large for a form."""
    digest: str = ""
    """Of the payload that was shown."""
    errors: dict[str, str] = {}


def form_of(view: View, job: Job) -> JobForm:
    """The form with the values of the job."""
    text = as_text(job.payload) if view.caller.sees_payloads else None
    if text is not None and len(text) > MAX_EDITABLE:
        text = None
    return JobForm(queue=job.queue, priority=str(job.priority), payload=text, digest=_digest(text or ""))


def sent_form(view: View) -> JobForm:
    """The form as it was sent."""
    payload = view.given("payload").replace("\r\n", "\n") if "payload" in view.form else None
    queue, priority, delay = (view.given(name).strip() for name in ("queue", "priority", "delay"))
    return JobForm(
        queue=queue, priority=priority, delay=delay, payload=payload, digest=view.given("payload_was"), errors={}
    )


def patch_of(view: View, form: JobForm) -> JobPatch:
    """The changed fields of the form. Errors are noted by field."""
    patch = JobPatch()
    if form.queue != view.given("queue_was"):
        patch.queue = form.queue
    if form.priority != view.given("priority_was"):
        _read(form, patch, "priority", lambda: _number(form.priority))
    if form.delay:
        _read(form, patch, "delay", lambda: duration(form.delay, "delay") / SECOND)
    if form.payload is not None and _digest(form.payload) != form.digest:
        if not view.caller.sees_payloads:
            raise Refused(403, "missing_scope", "this needs the scope payloads")
        _read(form, patch, "payload", lambda: _payload(form.payload or ""))
    return patch


def _read(form: JobForm, patch: JobPatch, name: str, read: Callable[[], Any]) -> None:
    try:
        setattr(patch, name, read())
    except InvalidInput as error:
        form.errors[name] = error.problem


def note_error(form: JobForm, error: InvalidInput) -> None:
    """Put an error beside the field that it is about; one of an argument beside the payload."""
    name = error.field if error.field in FIELDS else "payload"
    form.errors[name] = error.problem if name == error.field else str(error)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidOption("priority", f"must be a whole number, not {text[:40]!r}") from None


def _payload(text: str) -> msgspec.Raw:
    value = read_json(text, "payload")
    if not isinstance(value, dict):
        raise InvalidPayload("payload", "must be a JSON object of arguments")
    return msgspec.Raw(msgspec.json.encode(value))
