"""Pages: their requests, their replies, and the records that routes are made from."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from windlass.client.app import App
from windlass.core.tokens import Scope
from windlass.errors import InvalidOption
from windlass.server.operation import Answer, Call, Caller, Handler, Operation
from windlass.server.problem import Refused

T = TypeVar("T")
ROWS = 100
"""Rows of a page whose list is made from counts, not from a cursor."""
Fields = Mapping[str, Sequence[str]]
"""A query or a form: every name with its values."""


class Shown(msgspec.Struct, frozen=True):
    """A page: its template, its title, and what the template needs."""

    template: str
    title: str
    context: Mapping[str, Any] = {}
    status: int = 200


class Moved(msgspec.Struct, frozen=True):
    """Go to another page of this server."""

    to: str


class Download(msgspec.Struct, frozen=True):
    """A JSON file."""

    name: str
    content: bytes


Reply = Shown | Moved | Download


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the server that pages show or use."""

    environment: str = ""
    trace_url: str = ""
    """Where a trace is, with TRACE for its id; "": traces have no links."""
    rate: str = ""
    own_login: bool = True
    """Whether users log in here; else the surrounding app identifies them."""

    def trace_link(self, trace: str | None) -> str | None:
        """The address of a trace."""
        return self.trace_url.replace(TRACE, trace) if trace and self.trace_url else None


TRACE = "{trace}"


def check_trace_url(url: str) -> str:
    """The setting, if it is an address with room for the id of a trace."""
    if url and (TRACE not in url or not url.startswith(("http://", "https://")) or not url.isprintable()):
        raise InvalidOption("trace_url", f"must be an http or https address that has {TRACE}, not {url[:200]!r}")
    return url


class View(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a page, authenticated."""

    app: App
    caller: Caller
    csrf: str
    """The CSRF token that a form must send back."""
    path: Mapping[str, str]
    query: Fields
    form: Fields
    operations: Mapping[Handler, Operation]
    state: Any
    look: Look = Look()

    async def ask(
        self,
        handler: Handler,
        *,
        query: Any = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **path: str,
    ) -> Answer:
        """The answer of an operation of the REST API to the same caller."""
        operation = self.operations[handler]
        self.caller.need(operation.scope, changes=operation.changes)
        if query is None and operation.query is not None:
            query = operation.query()
        call = Call(
            app=self.app,
            operation=operation,
            caller=self.caller,
            path=path,
            query=query,
            body=body,
            text=b"",
            headers=headers or {},
            state=self.state,
        )
        return await handler(call)

    def asked(self, name: str, default: str = "") -> str:
        """A parameter of the query."""
        return next(iter(self.query.get(name, ())), default)

    def given(self, name: str, default: str = "") -> str:
        """A field of the form."""
        return next(iter(self.form.get(name, ())), default)

    def allows(self, scope: str) -> bool:
        """Whether the caller has a scope."""
        return self.caller.allows(scope)


PageHandler = Callable[[View], Awaitable[Reply]]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    path: str
    handler: PageHandler
    method: str = "GET"
    scope: Scope = Scope.READ


def link(path: str, **query: Any) -> str:
    """A path with a query, without what is empty."""
    given = {name: value for name, value in query.items() if value not in (None, "", ())}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def paged(view: View, path: str, rows: Sequence[T]) -> tuple[Sequence[T], dict[str, Any]]:
    """The rows of the page that is asked for, and links to the first and to the next."""
    asked = view.asked("page")
    number = int(asked) if asked.isdecimal() and len(asked) < 6 else 1
    first, older = (max(1, number) - 1) * ROWS, max(1, number) * ROWS
    links = {"first": path if first else None, "older": link(path, page=number + 1) if older < len(rows) else None}
    return rows[first:older], links


def unknown_verb(verb: str) -> Refused:
    """The refusal of an action that no page offers."""
    return Refused(404, "not_found", f"there is no action {verb[:40]!r} here")
