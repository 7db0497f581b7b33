"""Operations: what the server can do, as data. The routes and the OpenAPI document are made from the same records."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from windlass.client.app import App
from windlass.core.hidden import NOTHING_HIDDEN, HiddenFields, conceal
from windlass.core.jobs.job import Job
from windlass.core.tokens import Rights, Scope
from windlass.errors import ChangedSince, WindlassError

T = TypeVar("T")

PREFIX = "/api/v1"
REQUEST_SECONDS = 60.0
"""The time limit of a request, whatever the store does."""


class MissingScope(WindlassError):
    """The token does not have the scope that this needs."""

    code = "missing_scope"

    def __init__(self, scope: Scope) -> None:
        super().__init__(f"this needs the scope {scope!s}")
        self.scope = scope


class OutsideLimits(WindlassError):
    """The token is limited to other queues or types."""

    code = "outside_limits"


class ReadOnly(WindlassError):
    """The server changes nothing."""

    code = "read_only"

    def __init__(self) -> None:
        super().__init__("this server is read-only: it changes nothing, whatever the token allows")


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a server keeps from every caller: changes, and some fields of payloads, results and meta."""

    read_only: bool = False
    hidden: HiddenFields = NOTHING_HIDDEN
    waits: bool = True
    """Whether requests may stay open."""


class NeedsAsgi(WindlassError):
    """The server is mounted in a WSGI app, where no request may stay open."""

    code = "needs_asgi"


OPEN = Policy()
_CHANGING = (Scope.ENQUEUE, Scope.WORK, Scope.OPERATE)


class Caller(msgspec.Struct, frozen=True):
    """The authenticated caller of a request."""

    id: str
    name: str
    rights: Rights
    policy: Policy = OPEN

    def need(self, scope: Scope, *, changes: bool = False) -> None:
        """Raise MissingScope unless it has this scope, and ReadOnly for a change on a read-only server."""
        if self.policy.read_only and (changes or scope in _CHANGING):
            raise ReadOnly
        if not self.rights.allows(scope):
            raise MissingScope(scope)

    def need_waiting(self, what: str) -> None:
        """Raise NeedsAsgi where no request may stay open."""
        if not self.policy.waits:
            raise NeedsAsgi(f"{what} needs an ASGI server: this one is mounted in a WSGI app")

    def allows(self, scope: str) -> bool:
        """Whether it has a scope, and the server lets it use it."""
        wanted = Scope(scope)
        return self.rights.allows(wanted) and not (self.policy.read_only and wanted in _CHANGING)

    def need_queue(self, queue: str, type_: str | None = None) -> None:
        """Raise OutsideLimits unless it may act in this queue, with this type."""
        if not self.rights.covers(queue, type_):
            what = f"queue {queue!r}" if not self.rights.covers_queue(queue) else f"type {type_!r}"
            raise OutsideLimits(f"this token is limited, and {what} is not among what it may use")

    def need_whole_queue(self, queue: str) -> None:
        """Raise OutsideLimits unless it may act on all jobs of this queue."""
        self.need_queue(queue)
        if self.rights.types:
            raise OutsideLimits(f"this token is limited to types, and this concerns all jobs of queue {queue!r}")

    @contextmanager
    def hiding_others(self) -> Iterator[None]:
        """Errors for a limited token name what it asked for, without hints at other names."""
        try:
            yield
        except WindlassError as error:
            if error.hint and self.rights.is_limited:
                error.args = (str(error).removesuffix(error.hint),)
            raise

    def sees_job(self, job: Job) -> bool:
        """Whether the job is within its limits; a job outside them is answered as not found."""
        return self.rights.covers(job.queue, job.type)

    @property
    def sees_payloads(self) -> bool:
        """Whether payloads, results and log lines are shown to it."""
        return self.rights.allows(Scope.PAYLOADS)

    def shown(self, value: Any) -> Any:
        """What it sees of a payload, result or meta: nothing without the scope, and no hidden field."""
        return conceal(value, self.policy.hidden) if self.sees_payloads else None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request, authenticated and decoded."""

    app: App
    operation: "Operation"
    caller: Caller
    path: Mapping[str, str]
    query: Any
    body: Any
    text: bytes
    """The body as it was sent."""
    headers: Mapping[str, str]
    state: Any
    """What the server keeps between requests."""
    request: Request | None = None
    """None: a page of the dashboard calls the operation."""

    def expected(self, version: str, what: str) -> str | None:
        """The version that a change requires (If-Match); None: any. Raises ChangedSince if it is not `version`."""
        given = self.headers.get("if-match")
        if given is None or given.strip() == "*":
            return None
        if etag(version) not in [each.strip() for each in given.split(",")]:
            raise ChangedSince(what, version)
        return version


def etag(version: str) -> str:
    """A version as the header ETag has it."""
    return f'"{version}"'


class Answer(msgspec.Struct, frozen=True):
    """What is sent back: a value that becomes JSON, or a response as it is."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}


Handler = Callable[[Call], Awaitable[Answer]]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    method: str
    path: str
    scope: Scope
    handler: Handler
    summary: str
    query: type[msgspec.Struct] | None = None
    body: Any = None
    """The type that the body is decoded to; None: it has none."""
    optional_body: bool = False
    max_body: int = 1024 * 1024
    answers: Mapping[int, Any]
    """The type of the answer, by status."""
    media_type: str = "application/json"
    """Of the answer."""
    headers: tuple[str, ...] = ()
    """Request headers that it reads."""

    @property
    def id(self) -> str:
        """Its name in the OpenAPI document."""
        return self.handler.__name__

    @property
    def changes(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET"


def reads(
    path: str,
    handler: Handler,
    summary: str,
    answer: Any,
    query: type[msgspec.Struct] | None = None,
    *,
    scope: Scope = Scope.READ,
) -> Operation:
    """A GET with one kind of answer."""
    return Operation(
        method="GET", path=path, scope=scope, handler=handler, summary=summary, query=query, answers={200: answer}
    )
