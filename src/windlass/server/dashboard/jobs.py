"""Jobs: a list with filters in the URL, and actions on a selection or on all that match."""

from typing import Any

import msgspec

from windlass.core.status import FINISHED, LIVE, RETRYABLE, Status
from windlass.core.text import cut
from windlass.core.tokens import Scope
from windlass.errors import InvalidInput, JobNotFound, WindlassError
from windlass.server.actions import NewAction, start_action
from windlass.server.dashboard.confirm import Change, confirm
from windlass.server.dashboard.numbers import count, counted
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View, link, unknown_verb
from windlass.server.dashboard.search import Search, parse_search, search_text
from windlass.server.jobs import DeleteQuery, JobList, JobQuery, cancel_job, get_job, list_jobs, retry_job
from windlass.server.problem import Refused
from windlass.server.stats import MAX_COUNT

PAGE_SIZE = 50
MAX_SELECTED = 200
VERBS = {"cancel": LIVE, "retry": RETRYABLE, "delete": FINISHED}
"""What can be done to many jobs, and the statuses that it applies to."""
DONE = {"cancel": "cancelled", "retry": "retried", "delete": "deleted"}
_FILTERS = ("status", "type", "queue", "tenant", "tag", "parent", "schedule")


async def show_jobs(view: View) -> Reply:
    """A page of jobs, newest first."""
    if "q" in view.query:
        return await _searched(view, parse_search(view.asked("q")))
    query = _query(view)
    problem = ""
    found = JobList([], None)
    try:
        found = (await view.ask(list_jobs, query=query)).body
    except InvalidInput as error:  # a name that no job can have
        problem = str(error)
    found_count = None if problem else await count(view, query.wanted)
    here = link("/jobs", **query.wanted)
    context = {
        "jobs": found.jobs,
        "older": link("/jobs", **query.wanted, cursor=found.next_cursor) if found.next_cursor else None,
        "first": here if query.cursor else None,
        "query": query,
        "text": search_text(query),
        "tabs": _tabs(query),
        "count": found_count,
        "counted": counted(found_count) if found_count else "",
        "problem": problem,
        "verbs": [verb for verb, on in VERBS.items() if not query.status or set(query.status) & on],
        "said": _said(view.asked("said")),
    }
    return Shown("jobs.html", "Jobs", context)


async def _searched(view: View, search: Search) -> Reply:
    """Go to the job or the list that a text asks for."""
    if search.problem:
        context: dict[str, Any] = {
            "jobs": [],
            "older": None,
            "first": None,
            "query": JobQuery(),
            "text": view.asked("q"),
        }
        context |= {"tabs": _tabs(JobQuery()), "count": None, "counted": "", "problem": search.problem}
        return Shown("jobs.html", "Jobs", {**context, "verbs": [], "said": None})
    if search.id:
        return Moved(f"/jobs/{await _found(view, search.id)}")
    return Moved(link("/jobs", **search.filters))


async def _found(view: View, part: str) -> str:
    """The id with this part; a limited token learns neither ids of other jobs nor how many there are."""
    try:
        id_ = await view.app.jobs.afind(part)
        await view.ask(get_job, id=id_)
    except (InvalidInput, JobNotFound):
        if view.caller.rights.is_limited:
            raise JobNotFound(f"{cut(part, 40)}; give its whole id") from None
        raise
    return id_


def _query(view: View) -> JobQuery:
    given: dict[str, Any] = {name: view.asked(name) for name in _FILTERS if view.asked(name)}
    status = [each for value in view.query.get("status", ()) for each in value.split(",")]
    given["status"] = tuple(Status(each) for each in status if each in set(Status))
    return JobQuery(**given, limit=PAGE_SIZE, cursor=view.asked("cursor") or None)


def _tabs(query: JobQuery) -> list[tuple[str, str, bool]]:
    """A link for each status: its name, where to, whether it is shown now."""
    rest = {name: value for name, value in query.wanted.items() if name != "status"}
    every = [("all", link("/jobs", **rest), not query.status)]
    return every + [(str(each), link("/jobs", status=str(each), **rest), query.status == (each,)) for each in Status]


async def change_jobs(view: View) -> Reply:
    """Act on the selected jobs, or on all that match; asks first, with the count."""
    verb = view.given("verb")
    if verb not in VERBS:
        raise unknown_verb(verb)
    if view.given("which") == "matching":
        return await _change_matching(view, verb)
    ids = view.form.get("id", ())[:MAX_SELECTED]
    back = link("/jobs", **_filters_of_form(view))
    if not ids:
        raise Refused(422, "nothing_selected", "no job is selected: tick some, or act on all that match")
    question = Change(
        question=f"{verb.capitalize()} {_jobs(len(ids))}?",
        button=f"{verb.capitalize()} {_jobs(len(ids))}",
        count=len(ids),
        back=back,
        danger=verb != "retry",
        jobs=tuple(ids[:10]),
    )
    if (asked := confirm(view, "/jobs", question)) is not None:
        return asked
    done = sum([await _change_one(view, verb, id_) for id_ in ids])
    return Moved(_with(back, f"{verb}.{done}.{len(ids) - done}"))


async def _change_one(view: View, verb: str, id_: str) -> bool:
    """Whether the verb applied to this job."""
    try:
        match verb:
            case "retry":
                await view.ask(retry_job, id=id_)
            case "cancel":
                await view.ask(cancel_job, id=id_, query=DeleteQuery())
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
    filters = _filters_of_form(view)
    applies = sorted(VERBS[verb])
    statuses = [each for each in filters.get("status", []) if each in applies] or applies
    wanted = {**filters, "status": tuple(statuses)}
    found = await count(view, wanted, MAX_COUNT)
    question = Change(
        question=f"{verb.capitalize()} {counted(found)} jobs that match {_words(filters)}?",
        button=f"{verb.capitalize()} them",
        count=found.count,
        back=link("/jobs", **filters),
        danger=verb != "retry",
        detail=f"It applies to jobs that are {', '.join(statuses)}, and goes on in the background: "
        "you can watch it and stop it.",
    )
    if (asked := confirm(view, "/jobs", question)) is not None:
        return asked
    body = NewAction(verb=verb, **{**filters, "status": [Status(each) for each in statuses]})  # type: ignore[arg-type]
    action = (await view.ask(start_action, body=body)).body
    return Moved(f"/actions/{action.id}")


def _filters_of_form(view: View) -> dict[str, Any]:
    found: dict[str, Any] = {name: view.given(name) for name in _FILTERS if view.given(name)}
    if "status" in found:
        found["status"] = [each for each in found["status"].split(",") if each in set(Status)]
    return {name: value for name, value in found.items() if value}


def _words(filters: dict[str, Any]) -> str:
    said = [f"{name}:{','.join(value) if isinstance(value, list) else value}" for name, value in filters.items()]
    return " ".join(said) or "every job"


def _with(path: str, said: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}said={said}"


class Said(msgspec.Struct, frozen=True):
    """What an action on a selection did."""

    text: str
    refused: int


def _said(code: str) -> Said | None:
    """The sentence for a code such as `retry.3.1`; nothing of the address is shown as it is."""
    parts = code.split(".")
    if len(parts) != 3 or parts[0] not in DONE or not all(each.isdecimal() and len(each) < 6 for each in parts[1:]):
        return None
    return Said(f"{_jobs(int(parts[1]))} {DONE[parts[0]]}.", int(parts[2]))


def _jobs(count: int) -> str:
    return f"{count:,} {'job' if count == 1 else 'jobs'}"


PAGES = (
    Page(path="/jobs", handler=show_jobs),
    Page(path="/jobs", method="POST", handler=change_jobs, scope=Scope.OPERATE),
)
