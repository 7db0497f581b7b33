"""Jobs: a list with filters in the URL, and actions on a selection or on all that match."""

from typing import Any

import msgspec

from windlass.client.verbs.by_time import end_of_times
from windlass.client.verbs.search import FAILURES
from windlass.core.search_text import Search, make_search, parse_search, search_fields, search_text
from windlass.core.status import FINISHED, LIVE, RETRYABLE, Status
from windlass.core.tokens import Scope
from windlass.errors import InvalidInput, JobNotFound, WindlassError
from windlass.server.api.actions import NewAction, start_action
from windlass.server.api.job_list import JobQuery
from windlass.server.api.jobs import (
    DeleteQuery,
    FindQuery,
    FoundId,
    JobList,
    RetryRequest,
    cancel_job,
    find_job,
    get_job,
    list_jobs,
    retry_job,
)
from windlass.server.api.stats import MAX_COUNT, JobCount
from windlass.server.dashboard.confirm import Change, confirm
from windlass.server.dashboard.numbers import count, counted
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View, link, unknown_verb
from windlass.server.operation import MissingScope
from windlass.server.problem import Refused

PAGE_SIZE = 50
MAX_SELECTED = 200
VERBS = {"cancel": LIVE, "retry": RETRYABLE, "delete": FINISHED}
"""Verbs for many jobs, and the statuses that they apply to."""
DONE = {"cancel": "cancelled", "retry": "retried", "delete": "deleted"}
_OF_PAGE = ("q", "cursor", "said")
_FILTERS = ("status", "type", "queue", "tenant", "tag", "parent", "schedule")


async def show_jobs(view: View) -> Reply:
    """A page of jobs: newest first, or the latest failure first if only failures are wanted."""
    if "q" in view.query:
        return await _searched(view, parse_search(view.asked("q")))
    asked = make_search({name: values for name, values in view.query.items() if name not in _OF_PAGE})
    query = _query(view, asked)
    problem = asked.problem
    found = JobList([], None)
    try:
        if not problem:
            found = (await view.ask(list_jobs, query=query)).body
    except (InvalidInput, MissingScope) as error:  # a name that no job can have, or contents that are hidden
        problem = str(error)
    return Shown("jobs.html", "Jobs", await _context(view, asked, query, found, problem))


async def _context(view: View, asked: Search, query: JobQuery, found: JobList, problem: str) -> dict[str, Any]:
    found_count = None if problem else await _count(view, asked, query, found)
    fields = search_fields(asked)
    return {
        "jobs": found.jobs,
        "older": link("/jobs", **fields, cursor=found.next_cursor) if found.next_cursor else None,
        "first": link("/jobs", **fields) if query.cursor else None,
        "query": query,
        "fields": fields,
        "unindexed": bool(asked.terms),
        "searched_since": found.searched_since,
        "is_cut": found.next_cursor is not None and len(found.jobs) < query.limit,
        "text": search_text(asked),
        "without_time": not query.sort and any(job.id > end_of_times() for job in found.jobs),
        "tabs": _tabs(asked),
        "count": found_count,
        "counted": counted(found_count) if found_count else "",
        "problem": problem,
        "verbs": [verb for verb, on in VERBS.items() if not query.status or set(query.status) & on],
        "said": _said(view.asked("said")),
    }


async def _count(view: View, asked: Search, query: JobQuery, found: JobList) -> JobCount | None:
    """How many match: exact where the store keeps the count or the page shows all, else at least those shown."""
    if not asked.terms and set(asked.filters) <= {"status", "queue"} and not view.caller.rights.types:
        return await count(view, asked.filters)
    if query.cursor:
        return None
    return JobCount(len(found.jobs), found.next_cursor is None)


async def _searched(view: View, search: Search) -> Reply:
    """Redirect to the job or the list that a text names."""
    if search.problem:
        context = await _context(view, Search({}), JobQuery(), JobList([], None), search.problem)
        return Shown("jobs.html", "Jobs", {**context, "verbs": [], "text": view.asked("q")})
    if search.id:
        found: FoundId = (await view.ask(find_job, query=FindQuery(search.id))).body
        await view.ask(get_job, id=found.id)  # a whole id may be that of no job
        return Moved(f"/jobs/{found.id}")
    return Moved(link("/jobs", **search_fields(search)))


def _query(view: View, asked: Search) -> JobQuery:
    statuses = tuple(map(Status, asked.filters.get("status", ())))
    return JobQuery(
        **{**asked.filters, "status": statuses},
        q=search_text(Search({}, asked.terms)),
        sort="failure" if statuses and FAILURES.issuperset(statuses) and "parent" not in asked.filters else "",
        limit=PAGE_SIZE,
        cursor=view.asked("cursor") or None,
    )


def _tabs(asked: Search) -> list[tuple[str, str, bool]]:
    """A link for each status: its name, its path, and whether it is the current one."""
    fields = search_fields(asked)
    now = fields.pop("status", [])
    every = [("all", link("/jobs", **fields), not now)]
    return every + [(str(each), link("/jobs", **fields, status=str(each)), now == [each]) for each in Status]


async def change_jobs(view: View) -> Reply:
    """Act on the selected jobs, or on all that match; asks first, with the count."""
    verb = view.given("verb")
    if verb not in VERBS:
        raise unknown_verb(verb)
    if view.given("which") == "matching":
        return await _change_matching(view, verb)
    ids = view.form.get("id", ())[:MAX_SELECTED]
    back = link("/jobs", **search_fields(parse_search(view.given("search"))))
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
                await view.ask(retry_job, id=id_, body=RetryRequest())
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
    if view.given("unindexed"):
        raise Refused(422, "not_by_search", "no index covers this search: tick the jobs, or act on a filter")
    filters = _filters_of_form(view)
    applies = sorted(VERBS[verb])
    statuses = [each for each in filters.get("status", []) if each in applies] if view.given("status") else applies
    if not statuses:
        raise Refused(422, "nothing_selected", f"{verb} applies to jobs that are {', '.join(applies)}")
    wanted = {**filters, "status": tuple(statuses)}
    found = await count(view, wanted, MAX_COUNT)
    question = Change(
        question=f"{verb.capitalize()} {counted(found)} jobs that match {_words(filters)}?",
        button=f"{verb.capitalize()} them",
        count=found.count,
        back=link("/jobs", **filters),
        danger=verb != "retry",
        detail=f"It applies to jobs that are {', '.join(statuses)}, and runs in the background: "
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
    """The sentence for a code such as `retry.3.1`; no text of the address is shown."""
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
