"""Jobs: a list with filters in the URL."""

from typing import Any

import msgspec

from windlass.client.verbs.by_time import end_of_times
from windlass.client.verbs.search import FAILURES
from windlass.core.search_text import Search, make_search, parse_search, search_fields, search_text
from windlass.core.status import Status
from windlass.errors import InvalidInput
from windlass.server.api.job_list import JobQuery
from windlass.server.api.jobs import FindQuery, FoundId, JobList, find_job, get_job, list_jobs
from windlass.server.api.stats import JobCount
from windlass.server.dashboard.many_jobs import DONE, LABELS, VERBS, jobs_in_words
from windlass.server.dashboard.numbers import count, counted
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View, link
from windlass.server.operation import MissingScope

PAGE_SIZE = 50
_OF_PAGE = ("q", "cursor", "said")


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
        "verbs": [(verb, LABELS[verb]) for verb, on in VERBS.items() if not query.status or set(query.status) & on],
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


class Said(msgspec.Struct, frozen=True):
    """What an action on a selection did."""

    text: str
    refused: int


def _said(code: str) -> Said | None:
    """The sentence for a code such as `retry.3.1`; no text of the address is shown."""
    parts = code.split(".")
    if len(parts) != 3 or parts[0] not in DONE or not all(each.isdecimal() and len(each) < 6 for each in parts[1:]):
        return None
    return Said(f"{jobs_in_words(int(parts[1]))} {DONE[parts[0]]}.", int(parts[2]))


PAGES = (Page(path="/jobs", handler=show_jobs),)
