"""One schedule: next and last runs, and a form with the declared values."""

from typing import Any

import msgspec

from windlass.core.tokens import Scope
from windlass.errors import InvalidInput
from windlass.server.api.job_list import JobQuery
from windlass.server.api.jobs import JobRecord, list_jobs
from windlass.server.api.schedule_records import SchedulePatch, ScheduleRecord
from windlass.server.api.schedules import change_schedule, get_schedule
from windlass.server.dashboard.forms.changed import State, state_of_schedule, text_of, unless_changed
from windlass.server.dashboard.forms.fields import as_text
from windlass.server.dashboard.forms.job_change import MAX_EDITABLE
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View
from windlass.server.dashboard.render import span
from windlass.server.decode import parse_value

RUNS = 10
FIELDS = {
    "cron": ("Cron", "0 9 * * 1-5"),
    "every": ("Every", "15m"),
    "tz": ("Time zone", "Europe/Berlin"),
    "catch_up": ("After an outage", "one, all, none"),
    "overlap": ("May overlap", "yes, no"),
    "jitter": ("Spread over", "30s"),
}
CHOICES = {"catch_up": ("one", "all", "none"), "overlap": ("yes", "no")}


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: the effective value, the declared one, the operator's, and what was typed."""

    name: str
    title: str
    example: str
    value: str
    declared: str
    changed: str
    choices: tuple[str, ...] = ()
    typed: str = ""
    error: str = ""


async def show_schedule(view: View) -> Reply:
    """The page of a schedule."""
    return await _page(view)


async def _page(view: View, errors: dict[str, str] | None = None) -> Reply:
    answer = await view.ask(get_schedule, name=view.path["name"])
    schedule: ScheduleRecord = answer.body
    query = JobQuery(schedule=schedule.name, limit=RUNS)
    runs: list[JobRecord] = (await view.ask(list_jobs, query=query)).body.jobs
    found = errors or {}
    context = {
        "schedule": schedule,
        "job": schedule.settings or schedule.declared,
        "is_declared": schedule.declared.type is not None,
        "seen": answer.headers.get("etag", ""),
        "was": text_of(state_of_schedule(schedule)),
        "settings": [_setting(view, schedule, name, found) for name in FIELDS],
        "payload": _payload(view, schedule, found),
        "payload_changed": schedule.changed.payload is not None or schedule.changed.type is not None,
        "payload_error": found.get("payload", ""),
        "other_error": next((text for name, text in found.items() if name not in (*FIELDS, "payload")), ""),
        "errors": found,
        "runs": runs,
    }
    return Shown("schedule.html", f"Schedule {schedule.name}", context, 422 if errors else 200)


def _setting(view: View, schedule: ScheduleRecord, name: str, errors: dict[str, str]) -> Setting:
    title, example = FIELDS[name]
    held = schedule.settings
    return Setting(
        name=name,
        title=title,
        example=example,
        value=_said(name, getattr(held, name) if held else None),
        declared=_said(name, getattr(schedule.declared, name)),
        changed=_said(name, getattr(schedule.changed, name)),
        choices=CHOICES.get(name, ()),
        typed=view.given(name) if errors else "",
        error=errors.get(name, ""),
    )


def _said(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return span(value) if name in ("every", "jitter") else str(value)


def _payload(view: View, schedule: ScheduleRecord, errors: dict[str, str]) -> str | None:
    """The arguments for the form; None if they are hidden, or too large."""
    if errors and "payload" in view.form:
        return view.given("payload").replace("\r\n", "\n")
    held = schedule.settings
    if held is None or not view.caller.sees_payloads or held.payload is None:
        return None
    text = as_text(held.payload)
    return text if len(text) <= MAX_EDITABLE else None


async def change(view: View) -> Reply:
    """Change settings, or reset them to the declared ones."""
    name, seen = view.path["name"], view.given("seen")

    async def state() -> State:
        return state_of_schedule((await view.ask(get_schedule, name=name)).body)

    async def done() -> Reply:
        try:
            patch = _patch(view)
            await view.ask(change_schedule, name=name, body=patch, headers={"if-match": seen} if seen else {})
        except InvalidInput as error:
            known = error.field in FIELDS
            beside = error.field if known else "payload" if "payload" in view.form else ""
            return await _page(view, {beside: error.problem if known else str(error)})
        return Moved(f"/schedules/{name}")

    target = {"name": name, "title": f"schedule {name}", "back": f"/schedules/{name}"}
    return await unless_changed(view, done(), state, target)


def _patch(view: View) -> SchedulePatch:
    names = (*FIELDS, "job")
    patch = SchedulePatch(reset=tuple(each for each in view.form.get("reset", ()) if each in names))
    for name in FIELDS:
        if text := view.given(name).strip():
            setattr(patch, name, text == "yes" if name == "overlap" else text)
    if "payload" in view.form:
        payload = view.given("payload").encode(errors="replace")
        parse_value(payload, "payload")
        patch.payload = msgspec.Raw(payload)
    return patch


PAGES = (
    Page(path="/schedules/{name}", handler=show_schedule),
    Page(path="/schedules/{name}/change", method="POST", handler=change, scope=Scope.OPERATE),
)
