"""Lists of jobs: filters, searches that no index covers, and cursors."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from windlass.client.verbs.filters import check_limit, job_filter
from windlass.client.verbs.search import Found, is_by_failure, search
from windlass.core.ids import moment_of
from windlass.core.jobs.job import Job
from windlass.core.moments import to_datetime
from windlass.core.search import SearchTerms
from windlass.core.search_text import Search, make_search, parse_search
from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.errors import InvalidOption
from windlass.server.decode import make_cursor, read_cursor
from windlass.server.operation import Call

WITHOUT_INDEX = frozenset({"type", "queue", "tenant", "tag", "schedule"})
"""Filters whose jobs are searched, newest first."""


class CountQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A filter: every given field must match."""

    status: tuple[Status, ...] = ()
    type: str | None = None
    queue: str | None = None
    tenant: str | None = None
    tag: str | None = None
    parent: str | None = None
    schedule: str | None = None

    @property
    def wanted(self) -> dict[str, Any]:
        """The filter without the page."""
        return {name: value for name in CountQuery.__struct_fields__ if (value := getattr(self, name))}


class JobQuery(CountQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The filter of a list, and the page.

    `q` is a search as on the dashboard, such as `type:mail.* error:Timeout payload.user_id:42`; `sort=failure` lists
    failed and dead jobs by their latest failure.
    """

    q: str = ""
    sort: Literal["", "failure"] = ""
    limit: int = 50
    cursor: str | None = None


class ListedJobs(msgspec.Struct):
    """One page of jobs."""

    jobs: list[Job]
    next_cursor: str | None
    searched_since: datetime | None = None
    """If no index covers the search and it ended before a full page: from which moment on jobs were searched."""


async def find_jobs(call: Call, query: JobQuery) -> ListedJobs:
    """The jobs of a list that the caller sees."""
    asked = search_of(query)
    wanted, rights, terms = asked.filters, call.caller.rights, asked.terms
    if terms.payload:
        call.caller.need(Scope.PAYLOADS)
        _check_hidden(call, terms)
    for name, covers in (("queue", rights.covers_queue), ("type", rights.covers_type)):
        if name in wanted and not covers(wanted[name]):
            return ListedJobs([], None)
    bound = {**wanted, "token": call.caller.id if rights.is_limited else "", "terms": terms, "sort": query.sort}
    position = read_cursor(query.cursor, bound)
    is_search = bool(terms or query.sort or wanted.keys() & WITHOUT_INDEX or rights.is_limited)
    if is_search:
        found = await _search(call, query, wanted, terms, position)
    else:
        found = await _listed(call, query, wanted, position)
    since = None
    if found.next_cursor and len(found.jobs) < query.limit and is_search:
        since = _moment(found.next_cursor)
    return ListedJobs(found.jobs, make_cursor(found.next_cursor, bound), since)


def _check_hidden(call: Call, terms: SearchTerms) -> None:
    """Hidden fields are not searched."""
    for term in terms.payload:
        path = ".".join(term.path)
        if call.caller.policy.hidden.covers(path):
            raise InvalidOption(f"payload.{path}", "is hidden on this server")


def search_of(query: JobQuery) -> Search:
    """Filters and terms of a query; raises InvalidOption."""
    given = {name: [*map(str, value)] if name == "status" else [value] for name, value in query.wanted.items()}
    asked = parse_search(query.q)
    if asked.problem or asked.id:
        raise InvalidOption("q", asked.problem or "has an id: read that job")
    of_fields = make_search(given)
    if twice := sorted(of_fields.filters.keys() & asked.filters.keys()):
        raise InvalidOption(twice[0], "is given twice")
    type_ = asked.terms.type or of_fields.terms.type
    terms = msgspec.structs.replace(asked.terms, type=type_)
    return Search({**asked.filters, **of_fields.filters}, terms)


async def _listed(call: Call, query: JobQuery, wanted: dict[str, Any], position: str | None) -> Found:
    page = await call.app.jobs.alist(**wanted, limit=query.limit, cursor=position)
    return Found(list(page.items), page.next_cursor)


async def _search(
    call: Call, query: JobQuery, wanted: dict[str, Any], terms: SearchTerms, position: str | None
) -> Found:
    check_limit(query.limit)
    rights = call.caller.rights
    # Jobs outside the limits are not read: the end of a page would reveal them.
    limits = {"queues": tuple(sorted(rights.queues)), "types": tuple(sorted(rights.types))}
    chosen = msgspec.structs.replace(job_filter(**wanted), **limits)
    if query.sort and not is_by_failure(chosen):
        raise InvalidOption("sort", "is for the statuses failed and dead")
    operator = (await call.app._ready()).operator
    how = {"by_failure": bool(query.sort), "in_payloads": not call.caller.policy.hidden}
    return await search(operator, chosen, terms, query.limit, position, call.caller.sees_job, **how)


def _moment(cursor: str) -> datetime | None:
    """When the last job of a page was enqueued, or failed; None: its id has no time in it."""
    moment, dot, _ = cursor.partition(".")
    at = int(moment) if dot else moment_of(cursor)
    return None if at is None else to_datetime(at)
