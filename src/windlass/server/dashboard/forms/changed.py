"""Concurrent operators: the differences between what the page of a form showed and the current state."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from windlass.client.verbs.audit import AuditEntry
from windlass.core.jobs.job import Job
from windlass.core.text import cut
from windlass.errors import ChangedSince
from windlass.server.api.audit import AuditQuery, list_audit
from windlass.server.api.queues import QueueRecord
from windlass.server.api.schedule_records import ScheduleRecord
from windlass.server.dashboard.page import Reply, Shown, View

MAX_VALUE = 200
MAX_STATES = 40
State = dict[str, str]
"""What a page showed, by name, as text; a payload is its digest."""


class Difference(msgspec.Struct, frozen=True):
    """One field that has changed."""

    name: str
    was: str
    now: str


def state_of_job(job: Job) -> State:
    """What the page of a job shows."""
    found = {
        "status": str(job.status),
        "queue": job.queue,
        "priority": str(job.priority),
        "due": job.run_at.isoformat(timespec="seconds"),
        "attempt": str(job.attempt),
        "stop requested": "yes" if job.cancel_requested else "no",
    }
    return found if job.payload is None else {**found, "payload": _digest(job.payload)}


def state_of_queue(queue: QueueRecord) -> State:
    """What the page of a queue shows, without its numbers."""
    until = queue.paused_until.isoformat(timespec="seconds") if queue.paused_until else "until resumed"
    settings = msgspec.to_builtins(queue.settings)
    return {
        "paused": until if queue.paused else "no",
        "closed": "yes" if queue.closed else "no",
        **{name: _said(value) for name, value in settings.items()},
    }


def state_of_schedule(schedule: ScheduleRecord) -> State:
    """What the page of a schedule shows, without its times."""
    settings = msgspec.to_builtins(schedule.settings or schedule.declared)
    payload = settings.pop("payload")
    found = {"paused": "yes" if schedule.paused else "no", **{name: _said(each) for name, each in settings.items()}}
    return found if payload is None else {**found, "payload": _digest(payload)}


def _said(value: Any) -> str:
    return "–" if value in (None, {}) else value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:12]


def text_of(state: State) -> str:
    """A state as text, for a hidden field of a form."""
    return msgspec.json.encode({name: cut(value, MAX_VALUE) for name, value in state.items()}).decode()


def differences(was: str, now: State) -> list[Difference]:
    """The fields that differ; none if the text of the form cannot be read."""
    try:
        before = msgspec.json.decode(was, type=dict[str, str])
    except msgspec.MsgspecError:
        return []
    found = []
    for name, value in list(now.items())[:MAX_STATES]:
        old, new = cut(before.get(name, ""), MAX_VALUE), cut(value, MAX_VALUE)
        if name in before and old != new:
            found.append(Difference(name, *(("as you saw it", "another one") if name == "payload" else (old, new))))
    return found


async def unless_changed(
    view: View, change: Awaitable[Reply], state: Callable[[], Awaitable[State]], target: Mapping[str, str]
) -> Reply:
    """The reply to a change; after ChangedSince, a page with the differences."""
    try:
        return await change
    except ChangedSince:
        found = differences(view.given("was"), await state())
        context = {"differences": found, "by": await _by(view, target["name"]), **target}
        return Shown("changed.html", f"{target['title']} was changed", context, 412)


async def _by(view: View, name: str) -> AuditEntry | None:
    """The last action on it, for tokens that may read the audit."""
    if not view.allows("admin"):
        return None
    entries: list[AuditEntry] = (await view.ask(list_audit, query=AuditQuery(limit=50))).body.entries
    return next((each for each in entries if each.target == name), None)
