"""Actions on the ticked jobs, or on all that match: each asks first, with the count, shows its progress, and can be
stopped.
"""

from typing import Any

from windlass.client.tasks.options import check_options
from windlass.core.moments import SECOND, duration
from windlass.core.search_text import parse_search, search_fields
from windlass.core.status import FINISHED, LIVE, RETRYABLE, WAITING, Status
from windlass.core.tokens import Scope
from windlass.errors import InvalidInput, InvalidOption, JobNotFound, WindlassError
from windlass.server.api.actions import ActionChange, NewAction, get_action, list_actions, start_action, stop_action
from windlass.server.api.jobs import DeleteQuery, JobPatch, RetryRequest, cancel_job, change_job, retry_job, run_job
from windlass.server.api.stats import MAX_COUNT
from windlass.server.dashboard.confirm import Change, Input, confirm
from windlass.server.dashboard.numbers import count, counted
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View, link, unknown_verb
from windlass.server.problem import Refused

MAX_SELECTED = 200
VERBS = {
    "cancel": LIVE,
    "retry": RETRYABLE,
    "run": frozenset({Status.SCHEDULED, Status.FAILED}),
    "change": WAITING,
    "delete": FINISHED,
}
"""Verbs for many jobs, and the statuses that they apply to."""
LABELS = {"cancel": "Cancel", "retry": "Retry", "run": "Run now", "change": "Change", "delete": "Delete"}
DONE = {"cancel": "cancelled", "retry": "retried", "run": "made to run now", "change": "changed", "delete": "deleted"}
SAFE = ("retry", "run", "change")
_FILTERS = ("status", "type", "queue", "tenant", "tag", "parent", "schedule")
_INPUTS = {"queue": ("New queue", ""), "priority": ("New priority", ""), "delay": ("Due after", "5m, 2h, 0s")}


async def change_jobs(view: View) -> Reply:
    """Act on the selected jobs, or on all that match."""
    verb = view.given("verb")
    if verb not in VERBS:
        raise unknown_verb(verb)
    if view.given("which") == "matching":
        return await _change_matching(view, verb)
    ids = view.form.get("id", ())[:MAX_SELECTED]
    back = link("/jobs", **search_fields(parse_search(view.given("search"))))
    if not ids:
        raise Refused(422, "nothing_selected", "no job is selected: tick some, or act on all that match")
    changes, inputs = _sent(view) if verb == "change" else ({}, ())
    question = Change(
        question=_question(verb, jobs_in_words(len(ids))),
        button=_question(verb, jobs_in_words(len(ids))).rstrip("?"),
        count=len(ids),
        back=back,
        danger=verb not in SAFE,
        jobs=tuple(ids[:10]),
        inputs=inputs,
    )
    if (asked := confirm(view, "/jobs", question)) is not None:
        return asked
    done = sum([await _change_one(view, verb, id_, changes) for id_ in ids])
    return Moved(_with(back, f"{verb}.{done}.{len(ids) - done}"))


async def _change_one(view: View, verb: str, id_: str, changes: dict[str, Any]) -> bool:
    """Whether the verb applied to this job."""
    try:
        match verb:
            case "retry":
                await view.ask(retry_job, id=id_, body=RetryRequest())
            case "cancel":
                await view.ask(cancel_job, id=id_, query=DeleteQuery())
            case "run":
                await view.ask(run_job, id=id_)
            case "change":
                await view.ask(change_job, id=id_, body=JobPatch(**changes))
            case _:
                await view.ask(cancel_job, id=id_, query=DeleteQuery(purge=True))
    except JobNotFound:
        return False
    except WindlassError as error:
        if error.code not in ("not_allowed_now", "key_conflict"):
            raise
        return False
    return True


async def _change_matching(view: View, verb: str) -> Reply:
    """Start an action on all jobs that match the filter of the list."""
    if view.given("unindexed"):
        raise Refused(422, "not_by_search", "no index covers this search: tick the jobs, or act on a filter")
    filters = _filters_of_form(view)
    applies = sorted(VERBS[verb])
    statuses = [each for each in filters.get("status", []) if each in applies] if view.given("status") else applies
    if not statuses:
        raise Refused(422, "nothing_selected", f"{verb} applies to jobs that are {', '.join(applies)}")
    changes, inputs = _sent(view) if verb == "change" else ({}, ())
    found = await count(view, {**filters, "status": tuple(statuses)}, MAX_COUNT)
    question = Change(
        question=_question(verb, f"{counted(found)} jobs that match {_words(filters)}"),
        button=f"{LABELS[verb].removesuffix(' now')} them{' now' if verb == 'run' else ''}",
        count=found.count,
        back=link("/jobs", **filters),
        danger=verb not in SAFE,
        detail=f"It applies to jobs that are {', '.join(statuses)}, and runs in the background: "
        "you can watch it and stop it.",
        inputs=inputs,
    )
    if (asked := confirm(view, "/jobs", question)) is not None:
        return asked
    body = NewAction(
        verb=verb,  # type: ignore[arg-type]
        **{**filters, "status": [Status(each) for each in statuses]},
        change=ActionChange(**changes) if changes else None,
        expected=found.count if found.exact else None,
    )
    action = (await view.ask(start_action, body=body)).body
    return Moved(f"/actions/{action.id}")


def _sent(view: View) -> tuple[dict[str, Any], tuple[Input, ...]]:
    """What the form changes, and its fields, with errors once it is confirmed."""
    typed = {name: view.given(f"new_{name}").strip() for name in _INPUTS}
    changes, errors = {}, {}
    for name, text in typed.items():
        try:
            if text:
                changes[name] = _value(name, text)
        except InvalidInput as error:
            errors[name] = error.problem
    if not changes and not errors and view.given("confirmed"):
        errors["queue"] = "give a queue, a priority or a time"
    inputs = tuple(
        Input(name=f"new_{name}", label=label, value=typed[name], example=example, error=errors.get(name, ""))
        for name, (label, example) in _INPUTS.items()
    )
    return changes, inputs


def _value(name: str, text: str) -> Any:
    """The value of a field, checked."""
    if name == "delay":
        return duration(text, name) / SECOND
    if name == "priority" and not text.removeprefix("-").isdecimal():
        raise InvalidOption(name, f"must be a whole number, not {text[:40]!r}")
    value: Any = int(text) if name == "priority" else text
    check_options({name: value})
    return value


def _filters_of_form(view: View) -> dict[str, Any]:
    found: dict[str, Any] = {name: view.given(name) for name in _FILTERS if view.given(name)}
    if "status" in found:
        found["status"] = [each for each in found["status"].split(",") if each in set(Status)]
    return {name: value for name, value in found.items() if value}


def _question(verb: str, jobs: str) -> str:
    return f"Run {jobs} now?" if verb == "run" else f"{LABELS[verb]} {jobs}?"


def _words(filters: dict[str, Any]) -> str:
    said = [f"{name}:{','.join(value) if isinstance(value, list) else value}" for name, value in filters.items()]
    return " ".join(said) or "every job"


def _with(path: str, said: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}said={said}"


def jobs_in_words(count: int) -> str:
    """A number of jobs."""
    return f"{count:,} {'job' if count == 1 else 'jobs'}"


async def show_actions(view: View) -> Reply:
    """The newest actions first."""
    return Shown("actions.html", "Actions", {"actions": (await view.ask(list_actions)).body.actions})


async def show_action(view: View) -> Reply:
    """One action and its progress."""
    return Shown("action.html", "Action", {"action": (await view.ask(get_action, id=view.path["id"])).body})


async def stop(view: View) -> Reply:
    """Stop a running action after its current page."""
    await view.ask(stop_action, id=view.path["id"])
    return Moved(f"/actions/{view.path['id']}")


PAGES = (
    Page(path="/jobs", method="POST", handler=change_jobs, scope=Scope.OPERATE),
    Page(path="/actions", handler=show_actions),
    Page(path="/actions/{id}", handler=show_action),
    Page(path="/actions/{id}/stop", method="POST", handler=stop, scope=Scope.OPERATE),
)
